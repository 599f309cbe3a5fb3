"""ListGroups: every group that this broker coordinates."""

from kafkaesque.errors import GroupError, NotCoordinator
from kafkaesque.machines.groups.group_commands import DescribeGroups, GroupView
from kafkaesque.server.answers.ask_coordinator import ask_coordinator
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

CLASSIC = "classic"
"""The type of groups whose members assign."""
CONSUMER = "consumer"
"""The type of groups whose coordinator assigns."""
SHARE = "share"
"""The type of groups whose members read partitions together."""


async def handle(request: ListGroupsRequest, version: int, session: Session) -> ListGroupsResponse:
    """List the groups in the requested states and of the requested types; by default all."""
    types = {name.lower() for name in request.types_filter}
    states = {name.lower() for name in request.states_filter}
    listed: list[ListedGroup] = []
    for coordinator in session.broker.coordinators.all:
        if coordinator.is_loading:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=())
        if not coordinator.is_hosted:
            continue  # the partition's leader lists these groups
        try:
            found = await ask_coordinator(session, coordinator, DescribeGroups(groups=None))
        except NotCoordinator:
            if coordinator.is_hosted:  # it is about to hand over, and answers again in a moment
                return ListGroupsResponse(
                    error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=()
                )
            continue  # it has handed over
        except GroupError as error:
            return ListGroupsResponse(error_code=code_of(error), groups=())
        listed += [
            ListedGroup(
                group_id=view.group,
                protocol_type=view.protocol_type,
                group_state=view.state,
                group_type=_type(view),
            )
            for view in found.groups
            if (not states or view.state.lower() in states) and (not types or _type(view) in types)
        ]
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=tuple(listed))


def _type(view: GroupView) -> str:
    if view.shares is not None:
        return SHARE
    return CLASSIC if view.consumers is None else CONSUMER
