"""AlterShareGroupOffsets: moves the start of a share group in partitions."""

from kafkaesque.wire.kinds import Int16, Int32, Int64, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=91, name="AlterShareGroupOffsets", first=0, last=0, flexible_since=0)


@struct
class AlterShareGroupOffsetsRequestPartition:
    """One of `partitions` of AlterShareGroupOffsetsRequestTopic."""

    partition_index: Int32
    start_offset: Int64


@struct
class AlterShareGroupOffsetsRequestTopic:
    """One of `topics` of AlterShareGroupOffsetsRequest."""

    topic_name: str
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...]


@message(API)
class AlterShareGroupOffsetsRequest:
    """A client moves the start of a group."""

    group_id: str
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...]


@struct
class AlterShareGroupOffsetsResponsePartition:
    """One of `partitions` of AlterShareGroupOffsetsResponseTopic."""

    partition_index: Int32
    error_code: Int16
    error_message: str | None = None


@struct
class AlterShareGroupOffsetsResponseTopic:
    """One of `responses` of AlterShareGroupOffsetsResponse."""

    topic_name: str
    topic_id: Uuid
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...]


@message(API)
class AlterShareGroupOffsetsResponse:
    """The broker says in which partitions the start was moved."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...]
