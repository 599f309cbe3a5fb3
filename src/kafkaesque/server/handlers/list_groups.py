"""ListGroups: every consumer group that this broker coordinates."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.group_commands import Described
from kafkaesque.server.asking import ask_coordinator
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

CLASSIC = "classic"
"""The one type of groups there is."""


async def handle(request: ListGroupsRequest, version: int, session: Session) -> ListGroupsResponse:
    """List the groups in the states and of the types asked for; without any, all."""
    types = {name.lower() for name in request.types_filter}
    if types and CLASSIC not in types:
        return ListGroupsResponse(error_code=ErrorCode.NONE, groups=())
    states = {name.lower() for name in request.states_filter}
    listed: list[ListedGroup] = []
    try:
        for coordinator in session.broker.coordinators.all:
            found = await ask_coordinator(
                session, coordinator, lambda g, to, _: g.describe(None, to), Described
            )
            listed += [
                ListedGroup(
                    group_id=view.group,
                    protocol_type=view.protocol_type,
                    group_state=view.state,
                    group_type=CLASSIC,
                )
                for view in found.groups
                if not states or view.state.lower() in states
            ]
    except GroupError as error:
        return ListGroupsResponse(error_code=code_of(error), groups=())
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=tuple(listed))
