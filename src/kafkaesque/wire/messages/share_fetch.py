"""ShareFetch: how members of a share group take records, and acknowledge earlier ones."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Int64, Records, Since, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=78, name="ShareFetch", first=1, last=2, flexible_since=0)


@struct
class AcknowledgementBatch:
    """One of `acknowledgement_batches` of ShareFetchPartition.

    It has one type for all its offsets, or one for each.
    """

    first_offset: Int64
    last_offset: Int64
    acknowledge_types: tuple[Int8, ...] = ()


@struct
class ShareFetchPartition:
    """One of `partitions` of ShareFetchTopic."""

    partition_index: Int32
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


@struct
class ShareFetchTopic:
    """One of `topics` of ShareFetchRequest."""

    topic_id: Uuid
    partitions: tuple[ShareFetchPartition, ...]


@struct
class ShareForgottenTopic:
    """One of `forgotten_topics_data` of ShareFetchRequest."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


@message(API)
class ShareFetchRequest:
    """A member acknowledges records and asks for more."""

    group_id: str | None = None
    member_id: str | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Annotated[Int8, Since(2)] = 0
    is_renew_ack: Annotated[bool, Since(2)] = False
    topics: tuple[ShareFetchTopic, ...]
    forgotten_topics_data: tuple[ShareForgottenTopic, ...]


@struct
class LeaderIdAndEpoch:
    """`current_leader` of SharePartitionData; it is not tagged, and -1 means no hint."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class AcquiredRecords:
    """One of `acquired_records` of SharePartitionData."""

    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


@struct
class SharePartitionData:
    """One of `partitions` of ShareFetchableTopicResponse."""

    partition_index: Int32
    error_code: Int16
    error_message: str | None = None
    acknowledge_error_code: Int16
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: Records
    """Empty if there are none: librdkafka rejects an answer with null."""
    acquired_records: tuple[AcquiredRecords, ...]


@struct
class ShareFetchableTopicResponse:
    """One of `responses` of ShareFetchResponse."""

    topic_id: Uuid
    partitions: tuple[SharePartitionData, ...]


@struct
class NodeEndpoint:
    """One of `node_endpoints` of ShareFetchResponse."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


@message(API)
class ShareFetchResponse:
    """The broker returns records for the member, and the outcome of its acknowledgements."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    acquisition_lock_timeout_ms: Int32
    responses: tuple[ShareFetchableTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...]
