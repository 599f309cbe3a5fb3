"""SyncGroup: the leader brings everybody's assignment, the others wait for theirs."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.group_commands import Identity, Sync, Synced
from kafkaesque.server.asking import ask
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, version: int, session: Session) -> SyncGroupResponse:
    """Answer with the member's assignment once the leader has brought it."""
    command = Sync(
        group=request.group_id,
        generation=request.generation_id,
        member=Identity(member_id=request.member_id, instance_id=request.group_instance_id),
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple((one.member_id, bytes(one.assignment)) for one in request.assignments),
    )
    try:
        synced = await ask(
            session, request.group_id, lambda g, to, now: g.sync(command, to, now), Synced
        )
    except GroupError as error:
        return SyncGroupResponse(error_code=code_of(error), assignment=b"")
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
