"""DeleteGroups: the end of consumer groups that have no members, and of their offsets."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.group_commands import Deleted
from kafkaesque.server.asking import ask
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(
    request: DeleteGroupsRequest, version: int, session: Session
) -> DeleteGroupsResponse:
    """Delete each group by itself."""
    results = [await _delete(name, session) for name in request.groups_names]
    return DeleteGroupsResponse(results=tuple(results))


async def _delete(name: str, session: Session) -> DeletableGroupResult:
    code = ErrorCode.NONE
    try:
        await ask(session, name, lambda g, to, _: g.delete(name, to), Deleted)
    except GroupError as error:
        code = code_of(error)
    return DeletableGroupResult(group_id=name, error_code=code)
