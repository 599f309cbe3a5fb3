"""ListPrepared: the prepared transactions of a coordinator, with their owners. Our own."""

from kafkaesque.wire.kinds import Int16, Int32, Int64
from kafkaesque.wire.message import Api, message, struct

API = Api(key=20_001, name="ListPrepared", first=0, last=0, flexible_since=0)


@message(API)
class ListPreparedRequest:
    """A client asks which prepared transactions a broker coordinates."""

    transactional_ids: tuple[str, ...] | None = None
    """Only these; None for all."""


@struct
class PreparedState:
    """One of `prepared` of ListPreparedResponse."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    owner: str
    prepared_ms: Int64
    """The wall time since which it has waited."""
    limit_ms: Int64
    """It is aborted after waiting this long."""
    partition_count: Int32


@message(API)
class ListPreparedResponse:
    """The broker lists the prepared transactions that it coordinates."""

    error_code: Int16
    error_message: str | None = None
    prepared: tuple[PreparedState, ...] = ()
