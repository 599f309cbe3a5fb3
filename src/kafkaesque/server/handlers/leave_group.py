"""LeaveGroup: members leave a consumer group independently."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.group_commands import Identity, Leave
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

MANY_MEMBERS_SINCE = 3


async def handle(request: LeaveGroupRequest, version: int, session: Session) -> LeaveGroupResponse:
    """Remove the members; before version 3 there is one, whose error is the response's."""
    many = version >= MANY_MEMBERS_SINCE
    leaving = (
        tuple(
            Identity(member_id=one.member_id, instance_id=one.group_instance_id)
            for one in request.members
        )
        if many
        else (Identity(member_id=request.member_id),)
    )
    command = Leave(group=request.group_id, members=leaving)
    try:
        left = await ask_group(session, request.group_id, command)
    except GroupError as error:
        return LeaveGroupResponse(error_code=code_of(error))
    codes = [ErrorCode.NONE if error is None else code_of(error) for error in left.failures]
    if not many:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=tuple(
            MemberResponse(
                member_id=one.member_id, group_instance_id=one.instance_id, error_code=code
            )
            for one, code in zip(leaving, codes, strict=True)
        ),
    )
