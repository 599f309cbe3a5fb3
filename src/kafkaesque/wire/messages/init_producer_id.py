"""InitProducerId: the identity of idempotent producers."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message

API = Api(key=22, name="InitProducerId", first=0, last=6, flexible_since=2)


@message(API)
class InitProducerIdRequest:
    """A client asks for a producer id."""

    transactional_id: str | None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, Since(3)] = -1
    producer_epoch: Annotated[Int16, Since(3)] = -1
    enable2_pc: Annotated[bool, Since(6)] = False
    keep_prepared_txn: Annotated[bool, Since(6)] = False


@message(API)
class InitProducerIdResponse:
    """The broker returns a producer id and its epoch."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Annotated[Int64, Since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, Since(6)] = -1
