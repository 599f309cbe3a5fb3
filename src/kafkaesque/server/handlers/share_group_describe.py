"""ShareGroupDescribe: the state and the members of share groups."""

from collections.abc import Set

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.groups.consumer_commands import Place
from kafkaesque.machines.groups.group_commands import GroupView
from kafkaesque.machines.groups.share_commands import ShareMemberView
from kafkaesque.server.answers import allowed_operations
from kafkaesque.server.answers.named_places import named_places
from kafkaesque.server.answers.share_state import share_group
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.share_group_describe import (
    ShareGroupDescribeAssignment,
    ShareGroupDescribeGroup,
    ShareGroupDescribeMember,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeTopicPartitions,
)

DEAD = "Dead"


async def handle(
    request: ShareGroupDescribeRequest, version: int, session: Session
) -> ShareGroupDescribeResponse:
    """Describe each group independently; groups of other kinds are unknown here."""
    groups = [await _describe(name, session) for name in dict.fromkeys(request.group_ids)]
    if request.include_authorized_operations:
        may = allowed_operations.ON_GROUPS
        groups = [
            one if one.error_code else allowed_operations.added(one, authorized_operations=may)
            for one in groups
        ]
    return ShareGroupDescribeResponse(groups=tuple(groups))


async def _describe(name: str, session: Session) -> ShareGroupDescribeGroup:
    try:
        found = await share_group(session, name)
    except KafkaesqueError as error:
        return ShareGroupDescribeGroup(
            error_code=code_of(error),
            error_message=message_of(error),
            group_id=name,
            group_state=DEAD,
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=(),
        )
    return _described(found, session)


def _described(view: GroupView, session: Session) -> ShareGroupDescribeGroup:
    shares = view.shares
    assert shares is not None
    return ShareGroupDescribeGroup(
        error_code=ErrorCode.NONE,
        group_id=view.group,
        group_state=view.state,
        group_epoch=shares.epoch,
        assignment_epoch=shares.epoch,
        assignor_name=shares.assignor,
        members=tuple(_member(one, session) for one in shares.members),
    )


def _member(one: ShareMemberView, session: Session) -> ShareGroupDescribeMember:
    return ShareGroupDescribeMember(
        member_id=one.member_id,
        rack_id=one.rack_id or None,
        member_epoch=one.epoch,
        client_id=one.client_id,
        client_host=f"/{one.client_host}",  # as Java prints an address without a name
        subscribed_topic_names=one.names,
        assignment=_assignment(one.assigned, session),
    )


def _assignment(places: Set[Place], session: Session) -> ShareGroupDescribeAssignment:
    return ShareGroupDescribeAssignment(
        topic_partitions=tuple(
            ShareGroupDescribeTopicPartitions(
                topic_id=topic_id, topic_name=name, partitions=indexes
            )
            for topic_id, name, indexes in named_places(places, session)
        )
    )
