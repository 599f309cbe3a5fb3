"""OffsetForLeaderEpoch: how a client finds where logs diverge."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=23, name="OffsetForLeaderEpoch", first=2, last=4, flexible_since=4)


@struct
class OffsetForLeaderPartition:
    """One of `partitions` of OffsetForLeaderTopic."""

    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@struct
class OffsetForLeaderTopic:
    """One of `topics` of OffsetForLeaderEpochRequest."""

    topic: str
    partitions: tuple[OffsetForLeaderPartition, ...]


@message(API)
class OffsetForLeaderEpochRequest:
    """A client asks where a leader epoch ended."""

    replica_id: Annotated[Int32, Since(3)] = -2
    topics: tuple[OffsetForLeaderTopic, ...]


@struct
class EpochEndOffset:
    """One of `partitions` of OffsetForLeaderTopicResult."""

    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class OffsetForLeaderTopicResult:
    """One of `topics` of OffsetForLeaderEpochResponse."""

    topic: str
    partitions: tuple[EpochEndOffset, ...]


@message(API)
class OffsetForLeaderEpochResponse:
    """The broker returns the end of that epoch, or of the last one before it."""

    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetForLeaderTopicResult, ...]
