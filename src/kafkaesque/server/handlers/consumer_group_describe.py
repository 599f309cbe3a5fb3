"""ConsumerGroupDescribe: the state and the members of groups whose coordinator assigns."""

from collections.abc import Set

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.consumer_commands import ConsumerMemberView, Place
from kafkaesque.machines.groups.group_commands import DescribeGroups, GroupView
from kafkaesque.machines.groups.group_errors import UnknownGroup
from kafkaesque.server.answers import allowed_operations
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.answers.named_places import named_places
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeAssignment,
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeMember,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeTopicPartitions,
)

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


async def handle(
    request: ConsumerGroupDescribeRequest, version: int, session: Session
) -> ConsumerGroupDescribeResponse:
    """Describe each group independently; classic groups need DescribeGroups."""
    names = dict.fromkeys(request.group_ids)
    groups = [await _describe(name, session) for name in names]
    if request.include_authorized_operations:
        may = allowed_operations.ON_GROUPS
        groups = [
            one if one.error_code else allowed_operations.added(one, authorized_operations=may)
            for one in groups
        ]
    return ConsumerGroupDescribeResponse(groups=tuple(groups))


async def _describe(name: str, session: Session) -> ConsumerGroupDescribeGroup:
    try:
        found = await ask_group(session, name, DescribeGroups(groups=(name,)))
        if not found.groups or found.groups[0].consumers is None:
            raise UnknownGroup(f"there is no group {name} whose coordinator assigns")
    except GroupError as error:
        return ConsumerGroupDescribeGroup(
            error_code=code_of(error),
            error_message=message_of(error),
            group_id=name,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=(),
        )
    return _described(found.groups[0], session)


def _described(view: GroupView, session: Session) -> ConsumerGroupDescribeGroup:
    consumers = view.consumers
    assert consumers is not None
    return ConsumerGroupDescribeGroup(
        error_code=ErrorCode.NONE,
        group_id=view.group,
        group_state=view.state,
        group_epoch=consumers.epoch,
        assignment_epoch=consumers.epoch,
        assignor_name=consumers.assignor,
        members=tuple(_member(one, session) for one in consumers.members),
    )


def _member(one: ConsumerMemberView, session: Session) -> ConsumerGroupDescribeMember:
    return ConsumerGroupDescribeMember(
        member_id=one.member_id,
        instance_id=one.instance_id,
        rack_id=one.rack_id or None,
        member_epoch=one.epoch,
        client_id=one.client_id,
        client_host=f"/{one.client_host}",  # as Java prints an address without a name
        subscribed_topic_names=one.names,
        subscribed_topic_regex=one.pattern or None,
        assignment=_assignment(one.assigned, session),
        target_assignment=_assignment(one.target, session),
        member_type=CLASSIC_MEMBER if one.is_classic else CONSUMER_MEMBER,
    )


def _assignment(places: Set[Place], session: Session) -> ConsumerGroupDescribeAssignment:
    return ConsumerGroupDescribeAssignment(
        topic_partitions=tuple(
            ConsumerGroupDescribeTopicPartitions(
                topic_id=topic_id, topic_name=name, partitions=indexes
            )
            for topic_id, name, indexes in named_places(places, session)
        )
    )
