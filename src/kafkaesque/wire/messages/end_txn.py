"""EndTxn: commits or aborts a transaction."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message

API = Api(key=26, name="EndTxn", first=0, last=5, flexible_since=3)


@message(API)
class EndTxnRequest:
    """A producer ends its transaction."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    committed: bool


@message(API)
class EndTxnResponse:
    """The coordinator confirms that the end is decided, and returns the next epoch."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Annotated[Int64, Since(5)] = -1
    producer_epoch: Annotated[Int16, Since(5)] = -1
