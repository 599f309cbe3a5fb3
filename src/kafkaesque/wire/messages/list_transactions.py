"""ListTransactions: the transactions of a coordinator."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=66, name="ListTransactions", first=0, last=2, flexible_since=0)


@message(API)
class ListTransactionsRequest:
    """A client asks which transactions a broker coordinates."""

    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[Int64, ...] = ()
    duration_filter: Annotated[Int64, Since(1)] = -1
    transactional_id_pattern: Annotated[str | None, Since(2)] = None


@struct
class TransactionState:
    """One of `transaction_states` of ListTransactionsResponse."""

    transactional_id: str
    producer_id: Int64
    transaction_state: str


@message(API)
class ListTransactionsResponse:
    """The broker lists the transactions that it coordinates."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[TransactionState, ...]
