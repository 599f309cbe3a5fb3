"""The sinks of queries: each one's driver, newest decided batch and transactional ids.

A query cuts a stream into numbered batches. The tasks of a batch prepare transactions, and its
driver decides which of them the batch consists of. Each function here returns the new value to
record, or raises why not; the transactions themselves belong to `Transactions`.

Only the newest decision is kept: a query that has decided a batch has recorded that the one before
is done. So only an older copy of the query's checkpoint asks for a batch before the newest, and
writing it again would double it: OutdatedBatch.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.machines.transactions.transaction_commands import DecideBatch, Producer
from kafkaesque.machines.transactions.transaction_errors import (
    FencedDriver,
    InvalidTransactionalId,
    InvalidTransactionState,
    OutdatedBatch,
    ProducerFenced,
    TooManyTransactions,
)
from kafkaesque.machines.transactions.transaction_records import Sink, SinkKey, State, Transaction
from kafkaesque.transactional_ids import BatchTransactionId, is_name, parse

BATCH_TRANSACTIONS_MAX = 10_000
"""Transactions of one batch: its decision rewrites all of them."""

DRIVER_EPOCH_MAX = 2**31 - 1


class Sinks:
    """All sinks of one coordinator, and the transactional ids that belong to each."""

    def __init__(self, config: TransactionConfig) -> None:
        self._config = config
        self._attempts = 0
        """Total over the newest batches of all sinks."""
        self._known: dict[SinkKey, Sink] = {}
        self._ids: dict[SinkKey, dict[str, BatchTransactionId]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: SinkKey) -> Sink | None:
        """Return a sink if it is known."""
        return self._known.get(key)

    def items(self) -> Iterator[tuple[SinkKey, Sink]]:
        """Return all known sinks."""
        return iter(self._known.items())

    def ids(self, key: SinkKey, batch_max: int | None = None) -> list[str]:
        """Return the known ids of a sink, or only those of batches up to `batch_max`."""
        ids = self._ids.get(key, {})
        return [name for name, one in ids.items() if batch_max is None or one.batch <= batch_max]

    def is_settled(self, key: SinkKey, batch: int) -> bool:
        """Return whether no id of the batches up to this one is left."""
        return all(one.batch > batch for one in self._ids.get(key, {}).values())

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def registered(self, key: SinkKey, now_ms: int) -> Sink:
        """Return the sink with a new driver."""
        if not (is_name(key.query) and is_name(key.sink)):
            raise InvalidTransactionalId("queries and sinks have short names without a slash")
        known = self._known.get(key)
        if known is None:
            sinks_max = self._config.sinks_max
            if len(self._known) >= sinks_max:
                raise TooManyTransactions(f"a coordinator has at most {sinks_max} sinks")
            return Sink(driver_epoch=1, changed_ms=now_ms)
        if known.driver_epoch >= DRIVER_EPOCH_MAX:
            raise TooManyTransactions("the sink has had too many drivers")
        return replace(known, driver_epoch=known.driver_epoch + 1, changed_ms=now_ms)

    def check_came(self, transactional_id: str) -> None:
        """Raise if the id belongs to a batch whose task comes too late or too early."""
        one = parse(transactional_id)
        if one is None:
            return
        sink = self._known.get(SinkKey(one.query, one.sink))
        if sink is None or one.driver_epoch > sink.driver_epoch:
            raise InvalidTransactionState(f"driver {one.driver_epoch} has not registered")
        if one.driver_epoch < sink.driver_epoch:
            raise ProducerFenced("a newer driver has taken over the query's sink")
        if one.batch <= sink.batch:
            raise InvalidTransactionState(f"batch {one.batch} is already decided")

    def of_driver(self, key: SinkKey, driver_epoch: int) -> Sink:
        """Return a sink if this is its driver."""
        known = self._known.get(key)
        if known is None or driver_epoch > known.driver_epoch:
            raise InvalidTransactionState(f"driver {driver_epoch} has not registered")
        if driver_epoch < known.driver_epoch:
            raise FencedDriver(f"driver {known.driver_epoch} has taken over from {driver_epoch}")
        return known

    def decided(
        self,
        known: Sink,
        command: DecideBatch,
        transactions: Mapping[str, Transaction],
        now_ms: int,
    ) -> Sink:
        """Return the sink with this batch decided; every named transaction must be prepared."""
        if len(command.producers) > BATCH_TRANSACTIONS_MAX:
            raise TooManyTransactions(f"a batch has at most {BATCH_TRANSACTIONS_MAX} transactions")
        more = len(command.producers) - len(known.attempts)
        attempts_max = self._config.sink_attempts_max
        if more > 0 and self._attempts + more > attempts_max:
            raise TooManyTransactions(
                f"all newest batches of a coordinator have at most {attempts_max} transactions"
            )
        if command.batch < 0:
            raise InvalidTransactionState("batches are numbered from 0")
        attempts = []
        for name, producer in command.producers.items():
            one = parse(name)
            expected = command.query, command.sink, command.batch, command.driver_epoch
            if one is None or one[:4] != expected:
                raise InvalidTransactionState(f"{name} does not belong to this batch")
            _check_prepared(name, transactions.get(name), producer)
            attempts.append((one.task, one.attempt))
        return replace(
            known,
            batch=command.batch,
            decided_by=command.driver_epoch,
            attempts=tuple(attempts),
            changed_ms=now_ms,
        )

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, key: SinkKey, value: Sink | None) -> None:
        """Apply a sink's record."""
        self._attempts += _attempt_count(value) - _attempt_count(self._known.get(key))
        if value is None:
            self._known.pop(key, None)
        else:
            self._known[key] = value

    def note(self, transactional_id: str, *, is_known: bool) -> None:
        """Record that an id is known, or no longer is."""
        one = parse(transactional_id)
        if one is None:
            return
        key = SinkKey(one.query, one.sink)
        if is_known:
            self._ids.setdefault(key, {})[transactional_id] = one
            return
        ids = self._ids.get(key, {})
        ids.pop(transactional_id, None)
        if not ids:
            self._ids.pop(key, None)


def _attempt_count(sink: Sink | None) -> int:
    return 0 if sink is None else len(sink.attempts)


def names_of(key: SinkKey, sink: Sink) -> tuple[str, ...]:
    """Return the transactional ids of the sink's newest batch."""
    first = key.query, key.sink, sink.batch, sink.decided_by
    return tuple(str(BatchTransactionId(*first, task, attempt)) for task, attempt in sink.attempts)


def check_not_older(sink: Sink, batch: int) -> None:
    """Raise for a batch before the newest decided one."""
    if batch < sink.batch:
        raise OutdatedBatch(
            f"batch {sink.batch} is already decided, and {batch} comes before it: "
            "an older checkpoint of the query was restored"
        )


def _check_prepared(name: str, known: Transaction | None, producer: Producer) -> None:
    if known is None or known.state is not State.PREPARED:
        state = "gone" if known is None else known.state.value
        raise InvalidTransactionState(f"{name} is not prepared: {state}")
    if producer != Producer(known.producer_id, known.epoch):
        raise ProducerFenced(f"{name} was prepared by another producer")
