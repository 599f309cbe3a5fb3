"""Produce: how clients write records."""

from typing import Annotated

from kafkaesque.wire.kinds import NO_UUID, Int16, Int32, Int64, Records, Since, Tag, Until, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=0, name="Produce", first=3, last=13, flexible_since=9, advertised_first=0)


@struct
class PartitionProduceData:
    """One of `partition_data` of TopicProduceData."""

    index: Int32
    records: Records | None


@struct
class TopicProduceData:
    """One of `topic_data` of ProduceRequest."""

    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    name: Annotated[str, Until(12)] = ""
    partition_data: tuple[PartitionProduceData, ...]


@message(API)
class ProduceRequest:
    """A client sends record batches for partitions."""

    transactional_id: str | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[TopicProduceData, ...]


@struct
class BatchIndexAndErrorMessage:
    """One of `record_errors` of PartitionProduceResponse."""

    batch_index: Int32
    batch_index_error_message: str | None = None


@struct
class LeaderIdAndEpoch:
    """`current_leader` of PartitionProduceResponse."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class PartitionProduceResponse:
    """One of `partition_responses` of TopicProduceResponse."""

    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], Since(8)] = ()
    error_message: Annotated[str | None, Since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, Tag(0), Since(10)] = LeaderIdAndEpoch()


@struct
class TopicProduceResponse:
    """One of `responses` of ProduceResponse."""

    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    name: Annotated[str, Until(12)] = ""
    partition_responses: tuple[PartitionProduceResponse, ...]


@struct
class NodeEndpoint:
    """One of `node_endpoints` of ProduceResponse."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


@message(API)
class ProduceResponse:
    """The broker returns the offset at which each partition appended its batches."""

    responses: tuple[TopicProduceResponse, ...]
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], Tag(0), Since(10)] = ()
