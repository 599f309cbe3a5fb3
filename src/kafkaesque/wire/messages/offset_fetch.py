"""OffsetFetch: reads a group's positions."""

from typing import Annotated

from kafkaesque.wire.kinds import NO_UUID, Int16, Int32, Int64, NullableSince, Since, Until, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=9, name="OffsetFetch", first=1, last=10, flexible_since=6)


@struct
class OffsetFetchRequestTopics:
    """One of `topics` of OffsetFetchRequestGroup."""

    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    name: Annotated[str, Until(9)] = ""
    partition_indexes: tuple[Int32, ...] = ()


@struct
class OffsetFetchRequestGroup:
    """One of `groups` of OffsetFetchRequest."""

    group_id: str
    member_id: Annotated[str | None, Since(9)] = None
    member_epoch: Annotated[Int32, Since(9)] = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None


@struct
class OffsetFetchRequestTopic:
    """One of `topics` of OffsetFetchRequest."""

    name: str
    partition_indexes: tuple[Int32, ...] = ()


@message(API)
class OffsetFetchRequest:
    """A client asks for the offsets that groups have committed."""

    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], Since(8)] = ()
    group_id: Annotated[str, Until(7)] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, Until(7), NullableSince(2)] = ()
    require_stable: Annotated[bool, Since(7)] = False


@struct
class OffsetFetchResponsePartitions:
    """One of `partitions` of OffsetFetchResponseTopics."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    metadata: str | None
    error_code: Int16


@struct
class OffsetFetchResponseTopics:
    """One of `topics` of OffsetFetchResponseGroup."""

    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    name: Annotated[str, Until(9)] = ""
    partitions: tuple[OffsetFetchResponsePartitions, ...]


@struct
class OffsetFetchResponseGroup:
    """One of `groups` of OffsetFetchResponse."""

    group_id: str
    topics: tuple[OffsetFetchResponseTopics, ...]
    error_code: Int16 = 0


@struct
class OffsetFetchResponsePartition:
    """One of `partitions` of OffsetFetchResponseTopic."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(5)] = -1
    metadata: str | None
    error_code: Int16


@struct
class OffsetFetchResponseTopic:
    """One of `topics` of OffsetFetchResponse."""

    name: str
    partitions: tuple[OffsetFetchResponsePartition, ...]


@message(API)
class OffsetFetchResponse:
    """The broker returns the offsets that groups have committed."""

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], Since(8)] = ()
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], Until(7)] = ()
    error_code: Annotated[Int16, Since(2), Until(7)] = 0
