"""DescribeTopicPartitions: topics, a page at a time."""

from kafkaesque.wire.kinds import Int16, Int32, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=75, name="DescribeTopicPartitions", first=0, last=0, flexible_since=0)


@struct
class TopicRequest:
    """One of `topics` of DescribeTopicPartitionsRequest."""

    name: str


@struct
class Cursor:
    """`cursor` of DescribeTopicPartitionsRequest."""

    topic_name: str
    partition_index: Int32


@message(API)
class DescribeTopicPartitionsRequest:
    """A client asks for topics and partitions, a page at a time."""

    topics: tuple[TopicRequest, ...]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


@struct
class DescribeTopicPartitionsResponsePartition:
    """One of `partitions` of DescribeTopicPartitionsResponseTopic."""

    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    eligible_leader_replicas: tuple[Int32, ...] | None = None
    last_known_elr: tuple[Int32, ...] | None = None
    offline_replicas: tuple[Int32, ...] = ()


@struct
class DescribeTopicPartitionsResponseTopic:
    """One of `topics` of DescribeTopicPartitionsResponse."""

    error_code: Int16
    name: str | None
    topic_id: Uuid
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...]
    topic_authorized_operations: Int32 = -(2**31)


@struct
class ResponseCursor:
    """`next_cursor` of DescribeTopicPartitionsResponse."""

    topic_name: str
    partition_index: Int32


@message(API)
class DescribeTopicPartitionsResponse:
    """The broker returns a page of topics and their partitions."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...]
    next_cursor: ResponseCursor | None = None
