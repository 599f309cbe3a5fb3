"""Heartbeat: a member of a consumer group is alive, and learns whether its generation holds."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.group_commands import Heartbeat, Identity
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, version: int, session: Session) -> HeartbeatResponse:
    """Answer at once; an error tells the member to join again."""
    command = Heartbeat(
        group=request.group_id,
        generation=request.generation_id,
        member=Identity(member_id=request.member_id, instance_id=request.group_instance_id),
    )
    try:
        await ask_group(session, request.group_id, command)
    except GroupError as error:
        return HeartbeatResponse(error_code=code_of(error))
    return HeartbeatResponse(error_code=ErrorCode.NONE)
