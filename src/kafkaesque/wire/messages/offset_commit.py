"""OffsetCommit: stores a group's positions."""

from typing import Annotated

from kafkaesque.wire.kinds import NO_UUID, Int16, Int32, Int64, Since, Until, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=8, name="OffsetCommit", first=2, last=10, flexible_since=8)


@struct
class OffsetCommitRequestPartition:
    """One of `partitions` of OffsetCommitRequestTopic."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(6)] = -1
    committed_metadata: str | None


@struct
class OffsetCommitRequestTopic:
    """One of `topics` of OffsetCommitRequest."""

    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    name: Annotated[str, Until(9)] = ""
    partitions: tuple[OffsetCommitRequestPartition, ...]


@message(API)
class OffsetCommitRequest:
    """A client commits offsets for a group."""

    group_id: str
    generation_id_or_member_epoch: Int32 = -1
    member_id: str
    group_instance_id: Annotated[str | None, Since(7)] = None
    retention_time_ms: Annotated[Int64, Until(4)] = -1
    topics: tuple[OffsetCommitRequestTopic, ...]


@struct
class OffsetCommitResponsePartition:
    """One of `partitions` of OffsetCommitResponseTopic."""

    partition_index: Int32
    error_code: Int16


@struct
class OffsetCommitResponseTopic:
    """One of `topics` of OffsetCommitResponse."""

    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    name: Annotated[str, Until(9)] = ""
    partitions: tuple[OffsetCommitResponsePartition, ...]


@message(API)
class OffsetCommitResponse:
    """The broker says which offsets were committed."""

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: tuple[OffsetCommitResponseTopic, ...]
