"""DecideBatch: which transactions make up a batch, decided once and for all. Our own."""

from kafkaesque.wire.kinds import Int16, Int32, Int64
from kafkaesque.wire.message import Api, message, struct

API = Api(key=20_003, name="DecideBatch", first=0, last=0, flexible_since=0)


@struct
class DecidedTransaction:
    """One of `transactions` of DecideBatchRequest."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16


@message(API)
class DecideBatchRequest:
    """A driver commits a batch that consists of these prepared transactions."""

    query: str
    sink: str
    batch: Int64
    driver_epoch: Int32
    transactions: tuple[DecidedTransaction, ...] = ()


@message(API)
class DecideBatchResponse:
    """The decision on the batch, by this request or an earlier one; all partitions know of it."""

    error_code: Int16
    error_message: str | None = None
    transactional_ids: tuple[str, ...] = ()
    was_decided_before: bool = False
