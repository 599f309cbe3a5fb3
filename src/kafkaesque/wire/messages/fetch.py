"""Fetch: how clients read records."""

from typing import Annotated

from kafkaesque.wire.kinds import (
    NO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    Since,
    Tag,
    Until,
    Uuid,
)
from kafkaesque.wire.message import Api, message, struct

API = Api(key=1, name="Fetch", first=4, last=18, flexible_since=12)


@struct
class ReplicaState:
    """`replica_state` of FetchRequest."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@struct
class FetchPartition:
    """One of `partitions` of FetchTopic."""

    partition: Int32
    current_leader_epoch: Annotated[Int32, Since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, Since(12)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[Uuid, Tag(0), Since(17)] = NO_UUID
    high_watermark: Annotated[Int64, Tag(1), Since(18)] = 2**63 - 1


@struct
class FetchTopic:
    """One of `topics` of FetchRequest."""

    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    topic: Annotated[str, Until(12)] = ""
    partitions: tuple[FetchPartition, ...]


@struct
class ForgottenTopic:
    """One of `forgotten_topics_data` of FetchRequest."""

    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    topic: Annotated[str, Until(12)] = ""
    partitions: tuple[Int32, ...] = ()


@message(API)
class FetchRequest:
    """A client asks for record batches from given offsets."""

    cluster_id: Annotated[str | None, Tag(0), Since(12)] = None
    replica_state: Annotated[ReplicaState, Tag(1), Since(15)] = ReplicaState()
    replica_id: Annotated[Int32, Until(14)] = -1
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, Since(7)] = 0
    session_epoch: Annotated[Int32, Since(7)] = -1
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], Since(7)] = ()
    rack_id: Annotated[str, Since(11)] = ""


@struct
class EpochEndOffset:
    """`diverging_epoch` of PartitionData."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class LeaderIdAndEpoch:
    """`current_leader` of PartitionData."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class SnapshotId:
    """`snapshot_id` of PartitionData."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    """One of `aborted_transactions` of PartitionData."""

    producer_id: Int64
    first_offset: Int64


@struct
class PartitionData:
    """One of `partitions` of FetchableTopicResponse."""

    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, Tag(0), Since(12)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, Tag(1), Since(12)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, Tag(2), Since(12)] = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None
    preferred_read_replica: Annotated[Int32, Since(11)] = -1
    records: Records | None


@struct
class FetchableTopicResponse:
    """One of `responses` of FetchResponse."""

    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    topic: Annotated[str, Until(12)] = ""
    partitions: tuple[PartitionData, ...]


@struct
class NodeEndpoint:
    """One of `node_endpoints` of FetchResponse."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


@message(API)
class FetchResponse:
    """The broker returns record batches of partitions."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(7)] = 0
    session_id: Annotated[Int32, Since(7)] = 0
    responses: tuple[FetchableTopicResponse, ...]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], Tag(0), Since(16)] = ()
