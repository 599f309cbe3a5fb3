"""InitProducerId: the identity of idempotent producers."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message

API = Api(key=22, name="InitProducerId", first=0, last=5, flexible_since=2)


@message(API)
class InitProducerIdRequest:
    """A client asks for a producer id."""

    transactional_id: str | None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, Since(3)] = -1
    producer_epoch: Annotated[Int16, Since(3)] = -1


@message(API)
class InitProducerIdResponse:
    """The broker gives a producer id and its epoch."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
