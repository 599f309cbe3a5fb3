"""PrepareTxn: a producer leaves the end of its transaction to another client. Our own."""

from kafkaesque.wire.kinds import Int16, Int64
from kafkaesque.wire.message import Api, message

API = Api(key=20_000, name="PrepareTxn", first=0, last=0, flexible_since=0)


@message(API)
class PrepareTxnRequest:
    """A producer whose writes are all acknowledged prepares its transaction."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    owner: str
    """Who will end it, for users who list open transactions."""


@message(API)
class PrepareTxnResponse:
    """Whether the transaction is now prepared, or why not."""

    error_code: Int16
    error_message: str | None = None
