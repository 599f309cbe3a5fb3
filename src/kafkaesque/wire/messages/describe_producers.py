"""DescribeProducers: the producers of a partition, and where their open transactions start."""

from kafkaesque.wire.kinds import Int16, Int32, Int64
from kafkaesque.wire.message import Api, message, struct

API = Api(key=61, name="DescribeProducers", first=0, last=0, flexible_since=0)


@struct
class TopicRequest:
    """One of `topics` of DescribeProducersRequest."""

    name: str
    partition_indexes: tuple[Int32, ...] = ()


@message(API)
class DescribeProducersRequest:
    """A client asks for the producers of partitions."""

    topics: tuple[TopicRequest, ...]


@struct
class ProducerState:
    """One of `active_producers` of PartitionResponse."""

    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


@struct
class PartitionResponse:
    """One of `partitions` of TopicResponse."""

    partition_index: Int32
    error_code: Int16
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...]


@struct
class TopicResponse:
    """One of `topics` of DescribeProducersResponse."""

    name: str
    partitions: tuple[PartitionResponse, ...]


@message(API)
class DescribeProducersResponse:
    """The broker lists the producers of partitions."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TopicResponse, ...]
