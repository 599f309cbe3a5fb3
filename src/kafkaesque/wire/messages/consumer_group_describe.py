"""ConsumerGroupDescribe: the state of consumer groups."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Since, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=69, name="ConsumerGroupDescribe", first=0, last=1, flexible_since=0)


@message(API)
class ConsumerGroupDescribeRequest:
    """A client asks for the state of consumer groups."""

    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False


@struct
class ConsumerGroupDescribeTopicPartitions:
    """One of `topic_partitions` of ConsumerGroupDescribeAssignment."""

    topic_id: Uuid
    topic_name: str
    partitions: tuple[Int32, ...] = ()


@struct
class ConsumerGroupDescribeAssignment:
    """`assignment` and `target_assignment` of ConsumerGroupDescribeMember."""

    topic_partitions: tuple[ConsumerGroupDescribeTopicPartitions, ...]


@struct
class ConsumerGroupDescribeMember:
    """One of `members` of ConsumerGroupDescribeGroup."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: ConsumerGroupDescribeAssignment
    target_assignment: ConsumerGroupDescribeAssignment
    member_type: Annotated[Int8, Since(1)] = -1


@struct
class ConsumerGroupDescribeGroup:
    """One of `groups` of ConsumerGroupDescribeResponse."""

    error_code: Int16
    error_message: str | None = None
    group_id: str
    group_state: str
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: str
    members: tuple[ConsumerGroupDescribeMember, ...]
    authorized_operations: Int32 = -(2**31)


@message(API)
class ConsumerGroupDescribeResponse:
    """The broker returns the state and members of groups."""

    throttle_time_ms: Int32 = 0
    groups: tuple[ConsumerGroupDescribeGroup, ...]
