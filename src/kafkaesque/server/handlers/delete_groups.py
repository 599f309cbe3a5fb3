"""DeleteGroups: delete groups without members, and their offsets."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.group_commands import DeleteGroup, DescribeGroups
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.answers.share_state import check_is_empty, delete_state
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(
    request: DeleteGroupsRequest, version: int, session: Session
) -> DeleteGroupsResponse:
    """Delete each group independently."""
    results = [await _delete(name, session) for name in request.groups_names]
    return DeleteGroupsResponse(results=tuple(results))


async def _delete(name: str, session: Session) -> DeletableGroupResult:
    code = ErrorCode.NONE
    try:
        await _delete_shares(name, session)
        await ask_group(session, name, DeleteGroup(group=name))
    except GroupError as error:
        code = code_of(error)
    return DeletableGroupResult(group_id=name, error_code=code)


async def _delete_shares(name: str, session: Session) -> None:
    """Delete what a share group has done, before the group: then an error can be repeated."""
    found = await ask_group(session, name, DescribeGroups(groups=(name,)))
    for group in found.groups:
        if group.shares is not None:
            check_is_empty(group)
            await delete_state(session, name, None)
