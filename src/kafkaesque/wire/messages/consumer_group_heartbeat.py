"""ConsumerGroupHeartbeat: how members of a consumer group join, stay, get assigned and leave."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Since, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=68, name="ConsumerGroupHeartbeat", first=0, last=1, flexible_since=0)


@struct
class ConsumerGroupHeartbeatRequestTopicPartitions:
    """One of `topic_partitions` of ConsumerGroupHeartbeatRequest."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


@message(API)
class ConsumerGroupHeartbeatRequest:
    """A member reports that it is alive, and its changes; null or -1 means unchanged."""

    group_id: str
    member_id: str
    member_epoch: Int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: Annotated[str | None, Since(1)] = None
    server_assignor: str | None = None
    topic_partitions: tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...] | None = None


@struct
class ConsumerGroupHeartbeatResponseTopicPartitions:
    """One of `topic_partitions` of ConsumerGroupHeartbeatAssignment."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


@struct
class ConsumerGroupHeartbeatAssignment:
    """`assignment` of ConsumerGroupHeartbeatResponse: all that the member may read."""

    topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...]


@message(API)
class ConsumerGroupHeartbeatResponse:
    """The broker returns the member's epoch, and its assignment if that has changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: ConsumerGroupHeartbeatAssignment | None = None
