"""CreatePartitions: adds partitions to topics."""

from kafkaesque.wire.kinds import Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=37, name="CreatePartitions", first=0, last=3, flexible_since=2)


@struct
class CreatePartitionsAssignment:
    """One of `assignments` of CreatePartitionsTopic."""

    broker_ids: tuple[Int32, ...] = ()


@struct
class CreatePartitionsTopic:
    """One of `topics` of CreatePartitionsRequest."""

    name: str
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None


@message(API)
class CreatePartitionsRequest:
    """A client asks for more partitions of topics."""

    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32
    validate_only: bool


@struct
class CreatePartitionsTopicResult:
    """One of `results` of CreatePartitionsResponse."""

    name: str
    error_code: Int16
    error_message: str | None = None


@message(API)
class CreatePartitionsResponse:
    """The broker says which topics have grown."""

    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...]
