"""SyncGroup: the group leader sends all assignments, the others wait for theirs."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.group_commands import Identity, Sync
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, version: int, session: Session) -> SyncGroupResponse:
    """Return the member's assignment once the leader has sent it."""
    command = Sync(
        group=request.group_id,
        generation=request.generation_id,
        member=Identity(member_id=request.member_id, instance_id=request.group_instance_id),
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple((one.member_id, bytes(one.assignment)) for one in request.assignments),
    )
    try:
        synced = await ask_group(session, request.group_id, command)
    except GroupError as error:
        return SyncGroupResponse(error_code=code_of(error), assignment=b"")
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
