"""DescribeBatch: what is decided of a batch. Our own, not Kafka's."""

from kafkaesque.wire.kinds import Int16, Int64
from kafkaesque.wire.message import Api, message
from kafkaesque.wire.private_keys import DESCRIBE_BATCH

API = Api(key=DESCRIBE_BATCH, name="DescribeBatch", first=0, last=0, flexible_since=0)


@message(API)
class DescribeBatchRequest:
    """A driver or a task asks whether a batch is decided."""

    query: str
    sink: str
    batch: Int64


@message(API)
class DescribeBatchResponse:
    """The decision, if there is one; partitions may still have to be told of it."""

    error_code: Int16
    error_message: str | None = None
    is_decided: bool = False
    transactional_ids: tuple[str, ...] = ()
