"""UnregisterBroker: removes a broker that holds nothing."""

from kafkaesque.wire.kinds import Int16, Int32
from kafkaesque.wire.message import Api, message

API = Api(key=64, name="UnregisterBroker", first=0, last=0, flexible_since=0)


@message(API)
class UnregisterBrokerRequest:
    """A client removes a broker."""

    broker_id: Int32


@message(API)
class UnregisterBrokerResponse:
    """The broker says whether the other one was removed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
