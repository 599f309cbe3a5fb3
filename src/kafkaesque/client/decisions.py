"""Decides which prepared transactions make up a query's batch: once, for all of them together.

A driver's requests may be repeated, so they are retried until answered. The broker's side is in
`docs/explanation/transactions.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kafkaesque.client.errors import DriverFenced, OlderBatch
from kafkaesque.client.prepared import PreparedTransaction, until_known
from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.transactional_ids import query_key
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.decide_batch import (
    DecideBatchRequest,
    DecideBatchResponse,
    DecidedTransaction,
)
from kafkaesque.wire.messages.describe_batch import DescribeBatchRequest, DescribeBatchResponse
from kafkaesque.wire.messages.register_driver import (
    RegisterDriverRequest,
    RegisterDriverResponse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The transactions that make up a batch; all others of it are aborted."""

    batch: int
    transactional_ids: tuple[str, ...]
    was_decided_before: bool
    """Whether another call decided it; the transactions named in this one were then aborted."""


def register(router: Router, query: str, sink: str) -> int:
    """Take over a query's sink; return the new driver's epoch."""
    key = query_key(query)
    request = RegisterDriverRequest(query=query, sink=sink)

    def ask() -> int:
        said = router.ask_transaction_coordinator(key, request, RegisterDriverResponse)
        _check(said.error_code, query, sink, said.error_message)
        return said.driver_epoch

    return router.question(ask)


def decide(
    router: Router,
    query: str,
    sink: str,
    batch: int,
    driver_epoch: int,
    prepared: Sequence[PreparedTransaction],
) -> Decision:
    """Make a batch consist of these transactions, unless it is already decided."""
    key = query_key(query)
    request = DecideBatchRequest(
        query=query,
        sink=sink,
        batch=batch,
        driver_epoch=driver_epoch,
        transactions=tuple(
            DecidedTransaction(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                producer_epoch=one.epoch,
            )
            for one in prepared
        ),
    )

    def ask() -> Decision:
        said = router.ask_transaction_coordinator(key, request, DecideBatchResponse)
        _check(said.error_code, query, sink, said.error_message)
        return Decision(
            batch=batch,
            transactional_ids=said.transactional_ids,
            was_decided_before=said.was_decided_before,
        )

    return until_known(router, ask)


def decision(router: Router, query: str, sink: str, batch: int) -> Decision | None:
    """Return the decision on a batch, None while undecided."""
    key = query_key(query)
    request = DescribeBatchRequest(query=query, sink=sink, batch=batch)

    def ask() -> Decision | None:
        said = router.ask_transaction_coordinator(key, request, DescribeBatchResponse)
        _check(said.error_code, query, sink, said.error_message)
        if not said.is_decided:
            return None
        return Decision(
            batch=batch, transactional_ids=said.transactional_ids, was_decided_before=True
        )

    return router.question(ask)


def _check(code: int, query: str, sink: str, sentence: str | None) -> None:
    subject = f"sink {sink} of query {query}"
    if code == ErrorCode.PRODUCER_FENCED:
        raise DriverFenced(f"{subject}: {sentence}", ErrorCode(code).name)
    if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        raise OlderBatch(f"{subject}: {sentence}", ErrorCode(code).name)
    check(code, subject, sentence)
