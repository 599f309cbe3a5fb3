"""DescribeGroups: the state and the members of consumer groups."""

from msgspec.structs import replace

from kafkaesque.errors import GroupError, UnknownGroup
from kafkaesque.machines.consumer_commands import ConsumerView
from kafkaesque.machines.consumer_group import ConsumerGroupState
from kafkaesque.machines.group_commands import Described, GroupView, MemberView
from kafkaesque.machines.group_life import GroupState
from kafkaesque.machines.subscription import encode_assignment, encode_subscription
from kafkaesque.server import operations
from kafkaesque.server.asking import ask
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.named_places import named_places
from kafkaesque.server.session import Session
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
    """Describe each group by itself; one that is not there is dead."""
    # Each group once, however often it is named: its members may say megabytes of themselves.
    names = dict.fromkeys(request.groups)
    groups = [await _describe(name, version, session) for name in names]
    if request.include_authorized_operations:
        may = operations.ON_GROUPS
        groups = [
            one if one.error_code else operations.added(one, authorized_operations=may)
            for one in groups
        ]
    return DescribeGroupsResponse(groups=tuple(groups))


async def _describe(name: str, version: int, session: Session) -> DescribedGroup:
    try:
        found = await ask(session, name, lambda g, to, _: g.describe([name], to), Described)
    except GroupError as error:
        return _without_members(name, "", code_of(error), message_of(error))
    if found.groups and found.groups[0].consumers is not None:
        return _described(_in_old_form(found.groups[0], found.groups[0].consumers, session))
    if found.groups:
        return _described(found.groups[0])
    if version >= MISSING_IS_ERROR_SINCE:
        message = message_of(UnknownGroup(f"there is no group {name}"))
        return _without_members(name, GroupState.DEAD, ErrorCode.GROUP_ID_NOT_FOUND, message)
    return _without_members(name, GroupState.DEAD, ErrorCode.NONE, None)


def _in_old_form(view: GroupView, consumers: ConsumerView, session: Session) -> GroupView:
    """Show a group whose coordinator assigns to those who know classic ones only.

    Kafka tells them that there is none; whoever looks after a cluster wants to see it.
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
                client_host=f"/{one.client_host}",  # as Java writes an address without a name
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
