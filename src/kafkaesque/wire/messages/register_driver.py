"""RegisterDriver: a new driver takes over a query's sink. Our own, not Kafka's."""

from kafkaesque.wire.kinds import Int16, Int32
from kafkaesque.wire.message import Api, message
from kafkaesque.wire.private_keys import REGISTER_DRIVER

API = Api(key=REGISTER_DRIVER, name="RegisterDriver", first=0, last=0, flexible_since=0)


@message(API)
class RegisterDriverRequest:
    """A driver begins to write a query's batches to a sink."""

    query: str
    sink: str


@message(API)
class RegisterDriverResponse:
    """The driver's epoch: all with a lower one are fenced, and what they left open is aborted."""

    error_code: Int16
    error_message: str | None = None
    driver_epoch: Int32 = -1
