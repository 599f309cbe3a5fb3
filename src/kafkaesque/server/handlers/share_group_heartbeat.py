"""ShareGroupHeartbeat: join a share group, stay in it or leave; returns the assignment."""

from collections.abc import Set

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.groups.consumer_commands import Place, TopicsKnown
from kafkaesque.machines.groups.group_records import packed
from kafkaesque.machines.groups.share_commands import ShareHeartbeat
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.answers.share_requests import check_is_served
from kafkaesque.server.requests.errors import InvalidRequest, code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatTopicPartitions,
)

NAME_CHARS_MAX = 249
"""Characters of a client id that are kept."""


async def handle(
    request: ShareGroupHeartbeatRequest, version: int, session: Session
) -> ShareGroupHeartbeatResponse:
    """Answer at once; members learn of each other's changes by their next heartbeats."""
    try:
        check_is_served(session)
        if not request.group_id:
            raise InvalidRequest("the group id must not be empty")
        told = await ask_group(session, request.group_id, _command(request, session))
    except KafkaesqueError as error:
        return ShareGroupHeartbeatResponse(
            error_code=code_of(error),
            error_message=message_of(error),
            member_id=request.member_id,
            member_epoch=0,
            heartbeat_interval_ms=0,
        )
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=told.member_id,
        member_epoch=told.epoch,
        heartbeat_interval_ms=told.heartbeat_ms,
        assignment=None if told.assigned is None else _assignment(told.assigned),
    )


def _command(request: ShareGroupHeartbeatRequest, session: Session) -> ShareHeartbeat:
    catalog = session.broker.committed_catalog.machine
    names = request.subscribed_topic_names
    return ShareHeartbeat(
        group=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        topics=TopicsKnown(mark=catalog.topics_mark, topics=catalog.topics),
        rack_id=request.rack_id,
        client_id=(session.client_id or "")[:NAME_CHARS_MAX],
        client_host=session.client_host,
        names=None if names is None else frozenset(names),
    )


def _assignment(places: Set[Place]) -> ShareGroupHeartbeatAssignment:
    return ShareGroupHeartbeatAssignment(
        topic_partitions=tuple(
            ShareGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in packed(places)
        )
    )
