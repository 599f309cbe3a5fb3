"""DescribeQuorum: the replicas of the cluster's metadata, and how far each of them is."""

from typing import Annotated

from kafkaesque.wire.kinds import NO_UUID, Int16, Int32, Int64, Since, UInt16, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=55, name="DescribeQuorum", first=0, last=2, flexible_since=0)


@struct
class QuorumPartitionRequest:
    """One of `partitions` of QuorumTopicRequest."""

    partition_index: Int32


@struct
class QuorumTopicRequest:
    """One of `topics` of DescribeQuorumRequest."""

    topic_name: str
    partitions: tuple[QuorumPartitionRequest, ...]


@message(API)
class DescribeQuorumRequest:
    """A client asks for the state of the metadata's group."""

    topics: tuple[QuorumTopicRequest, ...]


@struct
class ReplicaState:
    """One of `current_voters` or `observers` of QuorumPartition."""

    replica_id: Int32
    replica_directory_id: Annotated[Uuid, Since(2)] = NO_UUID
    log_end_offset: Int64
    last_fetch_timestamp: Annotated[Int64, Since(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, Since(1)] = -1


@struct
class QuorumPartition:
    """One of `partitions` of QuorumTopic."""

    partition_index: Int32
    error_code: Int16
    error_message: Annotated[str | None, Since(2)] = None
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]


@struct
class QuorumTopic:
    """One of `topics` of DescribeQuorumResponse."""

    topic_name: str
    partitions: tuple[QuorumPartition, ...]


@struct
class QuorumListener:
    """One of `listeners` of QuorumNode."""

    name: str
    host: str
    port: UInt16


@struct
class QuorumNode:
    """One of `nodes` of DescribeQuorumResponse."""

    node_id: Int32
    listeners: tuple[QuorumListener, ...]


@message(API)
class DescribeQuorumResponse:
    """The metadata's leader lists the voters and observers, and how far each of them is."""

    error_code: Int16
    error_message: Annotated[str | None, Since(2)] = None
    topics: tuple[QuorumTopic, ...]
    nodes: Annotated[tuple[QuorumNode, ...], Since(2)] = ()
