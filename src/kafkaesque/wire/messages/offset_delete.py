"""OffsetDelete: deletes a group's offsets."""

from kafkaesque.wire.kinds import Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=47, name="OffsetDelete", first=0, last=0, flexible_since=1)


@struct
class OffsetDeleteRequestPartition:
    """One of `partitions` of OffsetDeleteRequestTopic."""

    partition_index: Int32


@struct
class OffsetDeleteRequestTopic:
    """One of `topics` of OffsetDeleteRequest."""

    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


@message(API)
class OffsetDeleteRequest:
    """A client deletes a group's offsets."""

    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


@struct
class OffsetDeleteResponsePartition:
    """One of `partitions` of OffsetDeleteResponseTopic."""

    partition_index: Int32
    error_code: Int16


@struct
class OffsetDeleteResponseTopic:
    """One of `topics` of OffsetDeleteResponse."""

    name: str
    partitions: tuple[OffsetDeleteResponsePartition, ...]


@message(API)
class OffsetDeleteResponse:
    """The broker says which offsets were deleted."""

    error_code: Int16
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...]
