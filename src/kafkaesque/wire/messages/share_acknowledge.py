"""ShareAcknowledge: how members of a share group finish, return or keep records they hold."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Int64, Since, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=79, name="ShareAcknowledge", first=1, last=2, flexible_since=0)


@struct
class AcknowledgementBatch:
    """One of `acknowledgement_batches` of AcknowledgePartition.

    It has one type for all its offsets, or one for each.
    """

    first_offset: Int64
    last_offset: Int64
    acknowledge_types: tuple[Int8, ...] = ()


@struct
class AcknowledgePartition:
    """One of `partitions` of AcknowledgeTopic."""

    partition_index: Int32
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


@struct
class AcknowledgeTopic:
    """One of `topics` of ShareAcknowledgeRequest."""

    topic_id: Uuid
    partitions: tuple[AcknowledgePartition, ...]


@message(API)
class ShareAcknowledgeRequest:
    """A member acknowledges records without asking for more."""

    group_id: str | None = None
    member_id: str | None
    share_session_epoch: Int32
    is_renew_ack: Annotated[bool, Since(2)] = False
    topics: tuple[AcknowledgeTopic, ...]


@struct
class LeaderIdAndEpoch:
    """`current_leader` of AcknowledgedPartition; it is not tagged, and -1 means no hint."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class AcknowledgedPartition:
    """One of `partitions` of ShareAcknowledgeTopicResponse."""

    partition_index: Int32
    error_code: Int16
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


@struct
class ShareAcknowledgeTopicResponse:
    """One of `responses` of ShareAcknowledgeResponse."""

    topic_id: Uuid
    partitions: tuple[AcknowledgedPartition, ...]


@struct
class NodeEndpoint:
    """One of `node_endpoints` of ShareAcknowledgeResponse."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


@message(API)
class ShareAcknowledgeResponse:
    """The broker returns the outcome of the acknowledgements."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, Since(2)] = 0
    responses: tuple[ShareAcknowledgeTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...]
