"""Transactions, for an administrator: list them, see their state, end them."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafkaesque.client.everyone import Everyone
from kafkaesque.client.prepared import PreparedTransaction, end_transaction
from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import Router
from kafkaesque.client.topics import Place
from kafkaesque.types import NodeId
from kafkaesque.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaesque.wire.messages.list_prepared import (
    ListPreparedRequest,
    ListPreparedResponse,
    PreparedState,
)
from kafkaesque.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

PREPARED = "Prepared"
"""The state of a transaction that any client knowing its id may end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionInfo:
    """One transactional id and its newest transaction."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    began_ms: int
    """-1 if none is open."""
    places: Sequence[Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedInfo:
    """A transaction that waits for its end."""

    transactional_id: str
    producer_id: int
    epoch: int
    owner: str
    """Who will end it, as its producer says."""
    prepared_ms: int
    """The wall time since which it has waited."""
    limit_ms: int
    """It is aborted after waiting this long."""
    partition_count: int


class Transactions:
    """The transactions of one cluster."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def list(
        self, states: Sequence[str] = (), missing: set[NodeId] | None = None
    ) -> list[tuple[str, str, int]]:
        """Return transactional id, state and producer id of all, or of those in these states.

        Brokers that are away or do not answer are added to `missing`.
        """
        request = ListTransactionsRequest(state_filters=tuple(states))

        def accept(said: ListTransactionsResponse) -> None:
            check(said.error_code, "transactions")

        everyone = Everyone(self._router, request, ListTransactionsResponse, accept)
        found = self._router.question(everyone.ask)
        if missing is not None:
            missing |= everyone.missing
        return sorted(
            (one.transactional_id, one.transaction_state, one.producer_id)
            for said in found
            for one in said.transaction_states
        )

    def prepared(
        self, transactional_id: str | None = None, missing: set[NodeId] | None = None
    ) -> dict[str, PreparedInfo]:
        """Return the prepared transactions, or that of one id, by their ids.

        Brokers that do not know prepared transactions have none; those that are away or do not
        answer are added to `missing`.
        """
        wanted = None if transactional_id is None else (transactional_id,)
        request = ListPreparedRequest(transactional_ids=wanted)

        def accept(said: ListPreparedResponse) -> None:
            check(said.error_code, "prepared transactions", said.error_message)

        everyone = Everyone(self._router, request, ListPreparedResponse, accept)

        def ask() -> Sequence[ListPreparedResponse]:
            return everyone.ask() if self._router.serves(ListPreparedRequest) else []

        found = self._router.question(ask)
        if missing is not None:
            missing |= everyone.missing
        return {one.transactional_id: _prepared(one) for said in found for one in said.prepared}

    def describe(self, transactional_id: str) -> TransactionInfo:
        """Return the transaction under an id; raises Refused if the id is unknown."""
        what = f"transactional id {transactional_id}"
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))

        def ask() -> TransactionInfo:
            said = self._router.ask_transaction_coordinator(
                transactional_id, request, DescribeTransactionsResponse
            )
            one = first(said.transaction_states, what)
            check(one.error_code, what)
            return TransactionInfo(
                transactional_id=one.transactional_id,
                state=one.transaction_state,
                producer_id=one.producer_id,
                epoch=one.producer_epoch,
                timeout_ms=one.transaction_timeout_ms,
                began_ms=one.transaction_start_time_ms,
                places=[(t.topic, index) for t in one.topics for index in t.partitions],
            )

        return self._router.question(ask)

    def commit(self, info: TransactionInfo | PreparedTransaction) -> None:
        """Commit an open transaction in its producer's place, and fence its producer.

        Raises Refused for one in a query's batch, which is committed as a whole.
        """
        self._end(info, is_commit=True)

    def abort(self, info: TransactionInfo | PreparedTransaction) -> None:
        """Abort the open transaction of an id and fence its producer: its requests are refused."""
        if isinstance(info, PreparedTransaction) or info.state == PREPARED:
            self._end(info, is_commit=False)
            return
        request = InitProducerIdRequest(
            transactional_id=info.transactional_id, transaction_timeout_ms=info.timeout_ms
        )

        def ask() -> None:
            said = self._router.ask_transaction_coordinator(
                info.transactional_id, request, InitProducerIdResponse
            )
            check(said.error_code, f"transactional id {info.transactional_id}", is_change=True)

        self._router.change(ask)

    def _end(self, info: TransactionInfo | PreparedTransaction, *, is_commit: bool) -> None:
        ending = PreparedTransaction(
            transactional_id=info.transactional_id, producer_id=info.producer_id, epoch=info.epoch
        )
        end_transaction(self._router, ending, is_commit=is_commit)


def _prepared(one: PreparedState) -> PreparedInfo:
    return PreparedInfo(
        transactional_id=one.transactional_id,
        producer_id=one.producer_id,
        epoch=one.producer_epoch,
        owner=one.owner,
        prepared_ms=one.prepared_ms,
        limit_ms=one.limit_ms,
        partition_count=one.partition_count,
    )
