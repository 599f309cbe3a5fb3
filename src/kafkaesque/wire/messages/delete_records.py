"""DeleteRecords: deletes the oldest records of partitions."""

from kafkaesque.wire.kinds import Int16, Int32, Int64
from kafkaesque.wire.message import Api, message, struct

API = Api(key=21, name="DeleteRecords", first=0, last=2, flexible_since=2)


@struct
class DeleteRecordsPartition:
    """One of `partitions` of DeleteRecordsTopic."""

    partition_index: Int32
    offset: Int64


@struct
class DeleteRecordsTopic:
    """One of `topics` of DeleteRecordsRequest."""

    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


@message(API)
class DeleteRecordsRequest:
    """A client deletes the records before given offsets."""

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32


@struct
class DeleteRecordsPartitionResult:
    """One of `partitions` of DeleteRecordsTopicResult."""

    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


@struct
class DeleteRecordsTopicResult:
    """One of `topics` of DeleteRecordsResponse."""

    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...]


@message(API)
class DeleteRecordsResponse:
    """The broker returns the new first offset of each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...]
