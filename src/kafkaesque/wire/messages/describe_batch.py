"""DescribeBatch: the decision on a batch. Our own, not Kafka's."""

from kafkaesque.wire.kinds import Int16, Int64
from kafkaesque.wire.message import Api, message

API = Api(key=20_004, name="DescribeBatch", first=0, last=0, flexible_since=0)


@message(API)
class DescribeBatchRequest:
    """A driver or a task asks whether a batch is decided."""

    query: str
    sink: str
    batch: Int64


@message(API)
class DescribeBatchResponse:
    """The decision, if there is one; some partitions may not know of it yet."""

    error_code: Int16
    error_message: str | None = None
    is_decided: bool = False
    transactional_ids: tuple[str, ...] = ()
