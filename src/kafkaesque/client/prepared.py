"""A producer whose transactions another process may end.

A partition joins a transaction by being written to, and every end bumps the producer's epoch
(transactions v2, KIP-890). A producer that failed does not know which batches were accepted, so it
can only abort its transaction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kafkaesque.client.errors import ConnectionLost, RefusedForNow, Unreachable
from kafkaesque.client.producer import BatchSender, EncodedRecords
from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.client.topics import Place
from kafkaesque.errors import OutcomeUnknown
from kafkaesque.record.view import Codec
from kafkaesque.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaesque.wire.messages.prepare_txn import PrepareTxnRequest, PrepareTxnResponse

T = TypeVar("T")

_IN_DOUBT = (ConnectionLost, RefusedForNow)
"""After these a change may have been made: a former coordinator reports no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransaction:
    """A transaction that any process with this value may end."""

    transactional_id: str
    producer_id: int
    epoch: int


class TransactionalProducer:
    """Appends batches under one transactional id, one transaction after another; for one thread.

    A transaction starts with the first batch sent. After `prepare` this producer is done: others
    end the transaction.
    """

    def __init__(
        self, router: Router, transactional_id: str, codec: Codec, *, timeout_ms: int
    ) -> None:
        self._router = router
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._sender = BatchSender(router, codec, transactional_id)
        self._identity: tuple[int, int] | None = None
        self._is_open = False
        self.is_spent = False

    def send(self, records: Mapping[Place, EncodedRecords]) -> None:
        """Append one batch to each partition; all are acknowledged on return.

        Raises what the client's other requests raise; then the transaction can only be aborted.
        """
        assert not self.is_spent, "a producer that failed or has prepared cannot send"
        self.is_spent = True
        identity = self._come()
        self._is_open = self._is_open or bool(records)
        self._sender.send(identity, records)
        self.is_spent = False

    def prepare(self, owner: str) -> PreparedTransaction:
        """Prepare the transaction for another process to end, and record `owner` as its name.

        Everything sent has been acknowledged, so nothing can get lost any more. Raises Refused if
        nothing was sent.
        """
        assert not self.is_spent, "a producer that failed cannot prepare"
        self.is_spent = True
        producer_id, epoch = self._come()
        request = PrepareTxnRequest(
            transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, owner=owner
        )

        def ask() -> None:
            said = self._router.ask_transaction_coordinator(self._id, request, PrepareTxnResponse)
            check(said.error_code, f"transactional id {self._id}", said.error_message)

        self._router.question(ask)
        self._is_open = False
        return PreparedTransaction(transactional_id=self._id, producer_id=producer_id, epoch=epoch)

    def commit(self) -> None:
        """Commit what was sent; raises OutcomeUnknown if no answer came."""
        assert not self.is_spent, "a producer that failed can only abort"
        self._end(is_commit=True)

    def abort(self) -> None:
        """Abort what was sent, including what a failed producer may have sent."""
        self._end(is_commit=False)
        self._identity = None  # a batch's transaction is forgotten once aborted
        self._sender.start_over()
        self.is_spent = False

    def _end(self, *, is_commit: bool) -> None:
        if not self._is_open:
            return
        assert self._identity is not None
        self.is_spent = True
        ending = PreparedTransaction(
            transactional_id=self._id, producer_id=self._identity[0], epoch=self._identity[1]
        )
        self._identity = end_transaction(self._router, ending, is_commit=is_commit)
        self._sender.start_over()
        self._is_open = self.is_spent = False

    def _come(self) -> tuple[int, int]:
        """Take over the id when first needed, which fences its previous producer."""
        if self._identity is None:
            request = InitProducerIdRequest(
                transactional_id=self._id, transaction_timeout_ms=self._timeout_ms
            )

            def ask() -> tuple[int, int]:
                said = self._router.ask_transaction_coordinator(
                    self._id, request, InitProducerIdResponse
                )
                check(said.error_code, f"transactional id {self._id}")
                return said.producer_id, said.producer_epoch

            self._identity = self._router.question(ask)
        return self._identity


def end_transaction(
    router: Router, ending: PreparedTransaction, *, is_commit: bool
) -> tuple[int, int]:
    """End a transaction, even another process's prepared one; return its producer's new identity.

    Repeating this is harmless, so it is retried until answered. Raises OutcomeUnknown if it never
    is.
    """
    name = ending.transactional_id
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=ending.producer_id,
        producer_epoch=ending.epoch,
        committed=is_commit,
    )

    def ask() -> tuple[int, int]:
        said = router.ask_transaction_coordinator(name, request, EndTxnResponse)
        check(said.error_code, f"transactional id {name}")
        return said.producer_id, said.producer_epoch

    return until_known(router, ask)


def until_known(router: Router, ask: Callable[[], T]) -> T:
    """Retry a repeatable change until it is made or refused.

    Raises OutcomeUnknown if neither is known when time is up.
    """
    was_asked = False

    def attempt() -> T:
        nonlocal was_asked
        try:
            return ask()
        except _IN_DOUBT:
            was_asked = True
            raise

    try:
        return router.question(attempt)
    except (*_IN_DOUBT, Unreachable) as error:
        if not was_asked:
            raise
        raise OutcomeUnknown(f"{error}: it may or may not have been done") from error
