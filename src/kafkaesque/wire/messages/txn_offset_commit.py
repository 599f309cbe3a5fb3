"""TxnOffsetCommit: a group's positions that take effect when a transaction commits."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=28, name="TxnOffsetCommit", first=0, last=5, flexible_since=3)


@struct
class TxnOffsetCommitRequestPartition:
    """One of `partitions` of TxnOffsetCommitRequestTopic."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(2)] = -1
    committed_metadata: str | None


@struct
class TxnOffsetCommitRequestTopic:
    """One of `topics` of TxnOffsetCommitRequest."""

    name: str
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


@message(API)
class TxnOffsetCommitRequest:
    """A producer commits offsets for a group as part of its transaction."""

    transactional_id: str
    group_id: str
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Annotated[Int32, Since(3)] = -1
    member_id: Annotated[str, Since(3)] = ""
    group_instance_id: Annotated[str | None, Since(3)] = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


@struct
class TxnOffsetCommitResponsePartition:
    """One of `partitions` of TxnOffsetCommitResponseTopic."""

    partition_index: Int32
    error_code: Int16


@struct
class TxnOffsetCommitResponseTopic:
    """One of `topics` of TxnOffsetCommitResponse."""

    name: str
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


@message(API)
class TxnOffsetCommitResponse:
    """The broker says which offsets were accepted."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...]
