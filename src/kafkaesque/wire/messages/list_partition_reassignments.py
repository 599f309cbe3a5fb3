"""ListPartitionReassignments: the moves under way."""

from kafkaesque.wire.kinds import Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=46, name="ListPartitionReassignments", first=0, last=0, flexible_since=0)


@struct
class ListPartitionReassignmentsTopics:
    """One of `topics` of ListPartitionReassignmentsRequest."""

    name: str
    partition_indexes: tuple[Int32, ...] = ()


@message(API)
class ListPartitionReassignmentsRequest:
    """A client asks which partitions are being moved; null asks for all of them."""

    timeout_ms: Int32 = 60_000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None


@struct
class OngoingPartitionReassignment:
    """One of `partitions` of OngoingTopicReassignment."""

    partition_index: Int32
    replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    removing_replicas: tuple[Int32, ...] = ()


@struct
class OngoingTopicReassignment:
    """One of `topics` of ListPartitionReassignmentsResponse."""

    name: str
    partitions: tuple[OngoingPartitionReassignment, ...]


@message(API)
class ListPartitionReassignmentsResponse:
    """The broker lists a partition's replicas, and those being added and removed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
    topics: tuple[OngoingTopicReassignment, ...]
