"""ShareGroupDescribe: the state of share groups."""

from kafkaesque.wire.kinds import Int16, Int32, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=77, name="ShareGroupDescribe", first=1, last=1, flexible_since=0)


@message(API)
class ShareGroupDescribeRequest:
    """A client asks for the state of share groups."""

    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False


@struct
class ShareGroupDescribeTopicPartitions:
    """One of `topic_partitions` of ShareGroupDescribeAssignment."""

    topic_id: Uuid
    topic_name: str
    partitions: tuple[Int32, ...] = ()


@struct
class ShareGroupDescribeAssignment:
    """`assignment` of ShareGroupDescribeMember."""

    topic_partitions: tuple[ShareGroupDescribeTopicPartitions, ...]


@struct
class ShareGroupDescribeMember:
    """One of `members` of ShareGroupDescribeGroup."""

    member_id: str
    rack_id: str | None = None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()
    assignment: ShareGroupDescribeAssignment


@struct
class ShareGroupDescribeGroup:
    """One of `groups` of ShareGroupDescribeResponse."""

    error_code: Int16
    error_message: str | None = None
    group_id: str
    group_state: str
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: str
    members: tuple[ShareGroupDescribeMember, ...]
    authorized_operations: Int32 = -(2**31)


@message(API)
class ShareGroupDescribeResponse:
    """The broker returns the state and members of groups."""

    throttle_time_ms: Int32 = 0
    groups: tuple[ShareGroupDescribeGroup, ...]
