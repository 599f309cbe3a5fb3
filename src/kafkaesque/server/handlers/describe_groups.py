"""DescribeGroups: the state and the members of consumer groups."""

from msgspec.structs import replace

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.consumer_commands import ConsumerView
from kafkaesque.machines.groups.consumer_group import ConsumerGroupState
from kafkaesque.machines.groups.group_commands import DescribeGroups, GroupView, MemberView
from kafkaesque.machines.groups.group_errors import UnknownGroup
from kafkaesque.machines.groups.group_life import GroupState
from kafkaesque.machines.groups.subscription import encode_assignment, encode_subscription
from kafkaesque.server.answers import allowed_operations
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.answers.named_places import named_places
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

MISSING_IS_ERROR_SINCE = 6


async def handle(
    request: DescribeGroupsRequest, version: int, session: Session
) -> DescribeGroupsResponse:
    """Describe each group independently; unknown ones and share groups are reported as dead."""
    # Each group once, however often it is named: its members' metadata may take megabytes.
    names = dict.fromkeys(request.groups)
    groups = [await _describe(name, version, session) for name in names]
    if request.include_authorized_operations:
        may = allowed_operations.ON_GROUPS
        groups = [
            one if one.error_code else allowed_operations.added(one, authorized_operations=may)
            for one in groups
        ]
    return DescribeGroupsResponse(groups=tuple(groups))


async def _describe(name: str, version: int, session: Session) -> DescribedGroup:
    try:
        found = await ask_group(session, name, DescribeGroups(groups=(name,)))
    except GroupError as error:
        return _without_members(name, "", code_of(error), message_of(error))
    view = next((one for one in found.groups if one.shares is None), None)
    if view is not None and view.consumers is not None:
        return _described(_in_old_form(view, view.consumers, session))
    if view is not None:
        return _described(view)
    if version >= MISSING_IS_ERROR_SINCE:
        message = message_of(UnknownGroup(f"there is no consumer group {name}"))
        return _without_members(name, GroupState.DEAD, ErrorCode.GROUP_ID_NOT_FOUND, message)
    return _without_members(name, GroupState.DEAD, ErrorCode.NONE, None)


def _in_old_form(view: GroupView, consumers: ConsumerView, session: Session) -> GroupView:
    """Show a group whose coordinator assigns to clients that know only classic groups.

    Kafka reports it as missing; operators want to see it.
    """
    is_settled = view.state != ConsumerGroupState.RECONCILING
    return replace(
        view,
        state=view.state if is_settled else GroupState.PREPARING_REBALANCE,
        members=tuple(
            MemberView(
                member_id=one.member_id,
                instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                metadata=encode_subscription(one.names),
                assignment=encode_assignment(
                    {name: some for _, name, some in named_places(one.assigned, session)}
                ),
            )
            for one in consumers.members
        ),
    )


def _described(view: GroupView) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=view.group,
        group_state=view.state,
        protocol_type=view.protocol_type,
        protocol_data=view.protocol,
        members=tuple(
            DescribedGroupMember(
                member_id=one.member_id,
                group_instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=f"/{one.client_host}",  # as Java prints an address without a name
                member_metadata=one.metadata,
                member_assignment=one.assignment,
            )
            for one in view.members
        ),
    )


def _without_members(name: str, state: str, code: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=name,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
    )
