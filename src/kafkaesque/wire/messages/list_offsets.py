"""ListOffsets: finds offsets by time."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=2, name="ListOffsets", first=1, last=11, flexible_since=6)


@struct
class ListOffsetsPartition:
    """One of `partitions` of ListOffsetsTopic."""

    partition_index: Int32
    current_leader_epoch: Annotated[Int32, Since(4)] = -1
    timestamp: Int64


@struct
class ListOffsetsTopic:
    """One of `topics` of ListOffsetsRequest."""

    name: str
    partitions: tuple[ListOffsetsPartition, ...]


@message(API)
class ListOffsetsRequest:
    """A client asks for the offset at a time, or at either end, of partitions."""

    replica_id: Int32
    isolation_level: Annotated[Int8, Since(2)] = 0
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: Annotated[Int32, Since(10)] = 0


@struct
class ListOffsetsPartitionResponse:
    """One of `partitions` of ListOffsetsTopicResponse."""

    partition_index: Int32
    error_code: Int16
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, Since(4)] = -1


@struct
class ListOffsetsTopicResponse:
    """One of `topics` of ListOffsetsResponse."""

    name: str
    partitions: tuple[ListOffsetsPartitionResponse, ...]


@message(API)
class ListOffsetsResponse:
    """The broker returns the offset found in each partition."""

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: tuple[ListOffsetsTopicResponse, ...]
