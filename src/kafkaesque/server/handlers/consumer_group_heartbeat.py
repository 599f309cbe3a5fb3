"""ConsumerGroupHeartbeat: join, stay, release partitions or leave; returns the assignment."""

from collections.abc import Set

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.consumer_commands import (
    AWAY,
    JOINING,
    ConsumerHeartbeat,
    Place,
    TopicsKnown,
)
from kafkaesque.machines.groups.group_records import packed
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

OWN_MEMBER_IDS_SINCE = 1
NAME_CHARS_MAX = 249
"""Characters of a client id that are kept."""


async def handle(
    request: ConsumerGroupHeartbeatRequest, version: int, session: Session
) -> ConsumerGroupHeartbeatResponse:
    """Answer at once; members learn of each other's changes by their next heartbeats."""
    wrong = _wrong(request, version)
    if wrong:
        return _refused(request, ErrorCode.INVALID_REQUEST, wrong)
    command = _command(request, session)
    try:
        told = await ask_group(session, request.group_id, command)
    except GroupError as error:
        return _refused(request, code_of(error), message_of(error))
    assigned = told.assigned
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=told.member_id,
        member_epoch=told.epoch,
        heartbeat_interval_ms=told.heartbeat_ms,
        assignment=None if assigned is None else _assignment(assigned),
    )


def _wrong(request: ConsumerGroupHeartbeatRequest, version: int) -> str:
    """Return why a request is invalid; empty if it is valid."""
    epoch = request.member_epoch
    is_subscribed = request.subscribed_topic_names or request.subscribed_topic_regex
    may_lack_id = version < OWN_MEMBER_IDS_SINCE and epoch == JOINING
    if not request.group_id:
        return "the group id must not be empty"
    if not request.member_id and not may_lack_id:
        return "the member id must not be empty"
    if request.instance_id == "":
        return "the instance id must not be empty"
    if epoch < AWAY:
        return "unknown member epoch"
    if epoch == AWAY and request.instance_id is None:
        return "only a member with an instance id can leave temporarily"
    if epoch == JOINING:
        if request.rebalance_timeout_ms <= 0:
            return "a joining member must give a rebalance timeout"
        if request.topic_partitions is None or request.topic_partitions:
            return "a joining member must send an empty list of partitions"
        if not is_subscribed:
            return "a joining member must subscribe to topics"
    return ""


def _command(request: ConsumerGroupHeartbeatRequest, session: Session) -> ConsumerHeartbeat:
    catalog = session.broker.committed_catalog.machine
    names, owned = request.subscribed_topic_names, request.topic_partitions
    timeout_ms = request.rebalance_timeout_ms
    return ConsumerHeartbeat(
        group=request.group_id,
        member_id=request.member_id or session.broker.fresh_name(),
        epoch=request.member_epoch,
        topics=TopicsKnown(mark=catalog.topics_mark, topics=catalog.topics),
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=(session.client_id or "")[:NAME_CHARS_MAX],
        client_host=session.client_host,
        rebalance_timeout_ms=None if timeout_ms < 0 else timeout_ms,
        names=None if names is None else frozenset(names),
        pattern=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None
        if owned is None
        else frozenset((one.topic_id, index) for one in owned for index in one.partitions),
    )


def _assignment(places: Set[Place]) -> ConsumerGroupHeartbeatAssignment:
    return ConsumerGroupHeartbeatAssignment(
        topic_partitions=tuple(
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in packed(places)
        )
    )


def _refused(
    request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code,
        error_message=message,
        member_id=request.member_id,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )
