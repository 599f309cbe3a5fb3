"""ShareGroupHeartbeat: how members of a share group join, stay, get assigned and leave."""

from kafkaesque.wire.kinds import Int16, Int32, Uuid
from kafkaesque.wire.message import Api, message, struct

API = Api(key=76, name="ShareGroupHeartbeat", first=1, last=1, flexible_since=0)


@message(API)
class ShareGroupHeartbeatRequest:
    """A member reports that it is alive, and its changes; null means unchanged."""

    group_id: str
    member_id: str
    member_epoch: Int32
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


@struct
class ShareGroupHeartbeatTopicPartitions:
    """One of `topic_partitions` of ShareGroupHeartbeatAssignment."""

    topic_id: Uuid
    partitions: tuple[Int32, ...] = ()


@struct
class ShareGroupHeartbeatAssignment:
    """`assignment` of ShareGroupHeartbeatResponse: all that the member may read."""

    topic_partitions: tuple[ShareGroupHeartbeatTopicPartitions, ...]


@message(API)
class ShareGroupHeartbeatResponse:
    """The broker returns the member's epoch, and its assignment if that has changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: ShareGroupHeartbeatAssignment | None = None
