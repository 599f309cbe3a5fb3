"""JoinGroup: become a member of a consumer group's next generation; waits for the others."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.consumer_commands import TopicsKnown
from kafkaesque.machines.groups.group_commands import Join, Protocol
from kafkaesque.machines.groups.group_errors import MemberIdRequired
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

REBALANCE_TIMEOUT_SINCE = 1
MEMBER_IDS_SINCE = 4
NULL_PROTOCOL_SINCE = 7
SKIP_ASSIGNMENT_SINCE = 9
NAME_CHARS_MAX = 249
"""Characters of a client id or instance id that go into member ids."""


async def handle(request: JoinGroupRequest, version: int, session: Session) -> JoinGroupResponse:
    """Join, and answer once the generation is formed."""
    command = _command(request, version, session)
    try:
        joined = await ask_group(session, request.group_id, command)
    except GroupError as error:
        given = error.member_id if isinstance(error, MemberIdRequired) else request.member_id
        return JoinGroupResponse(
            error_code=code_of(error),
            protocol_name=None if version >= NULL_PROTOCOL_SINCE else "",
            leader="",
            member_id=given,
            members=(),
        )
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=tuple(
            JoinGroupResponseMember(member_id=name, group_instance_id=instance, metadata=metadata)
            for name, instance, metadata in joined.members
        ),
    )


def _command(request: JoinGroupRequest, version: int, session: Session) -> Join:
    instance_id = request.group_instance_id
    client_id = (session.client_id or "")[:NAME_CHARS_MAX]
    has_timeout = version >= REBALANCE_TIMEOUT_SINCE
    catalog = session.broker.committed_catalog.machine
    timeout_ms = request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms
    return Join(
        group=request.group_id,
        member_id=request.member_id,
        fresh_id=f"{(instance_id or client_id)[:NAME_CHARS_MAX]}-{session.broker.fresh_name()}",
        instance_id=instance_id,
        client_id=client_id,
        client_host=session.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=max(timeout_ms, 0),
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(p.name, bytes(p.metadata)) for p in request.protocols),
        topics=TopicsKnown(mark=catalog.topics_mark, topics=catalog.topics),
        knows_member_ids=version >= MEMBER_IDS_SINCE,
        can_skip_assignment=version >= SKIP_ASSIGNMENT_SINCE,
    )
