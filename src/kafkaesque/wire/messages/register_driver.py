"""RegisterDriver: a new driver takes over a query's sink. Our own, not Kafka's."""

from kafkaesque.wire.kinds import Int16, Int32
from kafkaesque.wire.message import Api, message

API = Api(key=20_002, name="RegisterDriver", first=0, last=0, flexible_since=0)


@message(API)
class RegisterDriverRequest:
    """A driver starts to write a query's batches to a sink."""

    query: str
    sink: str


@message(API)
class RegisterDriverResponse:
    """The driver's epoch: lower ones are fenced, and what they left open is aborted."""

    error_code: Int16
    error_message: str | None = None
    driver_epoch: Int32 = -1
