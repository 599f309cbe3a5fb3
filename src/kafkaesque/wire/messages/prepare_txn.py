"""PrepareTxn: a producer leaves its transaction to another to end it. Our own, not Kafka's."""

from kafkaesque.wire.kinds import Int16, Int64
from kafkaesque.wire.message import Api, message
from kafkaesque.wire.private_keys import PREPARE_TXN

API = Api(key=PREPARE_TXN, name="PrepareTxn", first=0, last=0, flexible_since=0)


@message(API)
class PrepareTxnRequest:
    """A producer has had all that it wrote acknowledged."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    owner: str
    """Who will end it, for people who look at what is open."""


@message(API)
class PrepareTxnResponse:
    """The transaction waits for its end, or why not."""

    error_code: Int16
    error_message: str | None = None
