"""Metadata: brokers, topics and partition leaders."""

from typing import Annotated

from kafkaesque.wire.kinds import NO_UUID, Int16, Int32, NullableSince, Since, Until, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=3, name="Metadata", first=0, last=13, flexible_since=9)


@struct
class MetadataRequestTopic:
    """One of `topics` of MetadataRequest."""

    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    name: Annotated[str | None, NullableSince(10)]


@message(API)
class MetadataRequest:
    """A client asks where topics and their partitions are."""

    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, NullableSince(1)]
    allow_auto_topic_creation: Annotated[bool, Since(4)] = True
    include_cluster_authorized_operations: Annotated[bool, Since(8), Until(10)] = False
    include_topic_authorized_operations: Annotated[bool, Since(8)] = False


@struct
class MetadataResponseBroker:
    """One of `brokers` of MetadataResponse."""

    node_id: Int32
    host: str
    port: Int32
    rack: Annotated[str | None, Since(1)] = None


@struct
class MetadataResponsePartition:
    """One of `partitions` of MetadataResponseTopic."""

    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, Since(7)] = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    offline_replicas: Annotated[tuple[Int32, ...], Since(5)] = ()


@struct
class MetadataResponseTopic:
    """One of `topics` of MetadataResponse."""

    error_code: Int16
    name: Annotated[str | None, NullableSince(12)]
    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    is_internal: Annotated[bool, Since(1)] = False
    partitions: tuple[MetadataResponsePartition, ...]
    topic_authorized_operations: Annotated[Int32, Since(8)] = -(2**31)


@message(API)
class MetadataResponse:
    """The broker lists the brokers, the topics and each partition's leader."""

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    brokers: tuple[MetadataResponseBroker, ...]
    cluster_id: Annotated[str | None, Since(2)] = None
    controller_id: Annotated[Int32, Since(1)] = -1
    topics: tuple[MetadataResponseTopic, ...]
    error_code: Annotated[Int16, Since(13)] = 0
    cluster_authorized_operations: Annotated[Int32, Since(8), Until(10)] = -(2**31)
