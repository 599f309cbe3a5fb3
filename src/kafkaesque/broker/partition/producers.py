"""The state of a partition's producers: enough to tell a retry from a new batch.

A producer numbers its records per partition (the *sequence*, which wraps at 2³¹) and resends a
batch whose response it did not get. The numbers are in the batch headers, so this state follows
from the headers of the log alone, in order: every reader of the same log has the same state. The
last five batches of each producer are kept, because a producer has at most five in flight. Only a
batch equal to one of them is a duplicate, and in a transaction only one of the same transaction: a
client that gave up a batch and aborted may reuse its sequence numbers.

An unknown producer may start at any sequence, as in Kafka since 2.5: its state may have been
dropped for being idle, and refusing it would stop a healthy producer for good.

The batches and markers of transactions are in the log too, so the set of open transactions follows
from it in the same way (`broker/partition/partition_transactions.py`).
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import NamedTuple

from kafkaesque.ages import Ages
from kafkaesque.broker.partition.partition_errors import (
    OutOfOrderSequence,
    SequenceReused,
    StaleProducerEpoch,
)
from kafkaesque.broker.partition.partition_transactions import PartitionTransactions
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import NewerFormat
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    InvalidTransactionState,
)
from kafkaesque.record.control import ControlType, read_control
from kafkaesque.record.errors import MalformedBatch, UnsupportedBatch
from kafkaesque.record.view import CONTROL_BIT, NO_PRODUCER_ID, TRANSACTIONAL_BIT, BatchView
from kafkaesque.types import Offset

BATCHES_REMEMBERED = 5
"""Per producer: Kafka's clients have at most this many requests in flight."""

SEQUENCE_MASK = (1 << 31) - 1
STATE_VERSION = 2
NO_NUMBER = -1
NO_TRANSACTION = -1

_TRANSACTIONS_SINCE = 2
_BEHIND_MAX = 1 << 30
"""Half of all sequences: beyond that, behind and ahead are indistinguishable."""

_HEAD = Struct(">BI")
_PRODUCER = Struct(">qhqiB")
_BATCH = Struct(">iiqq")
_TRANSACTION = Struct(">iq")
_UNUSED = 0
"""A field that once held a count and is no longer used; older versions accept 0."""


class RememberedBatch(NamedTuple):
    """One of a producer's last batches: its sequences, offset and timestamp."""

    base_sequence: int
    last_sequence: int
    base_offset: Offset
    timestamp_ms: int


class _Producer:
    """One producer; `last` is its newest sequence, -1 if it has none at this epoch."""

    __slots__ = ("batches", "coordinator_term", "epoch", "last", "number", "seen_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_term = -1
        """The term of the coordinator that wrote its last marker; -1 before the first."""
        self.number = NO_NUMBER
        """The number of its newest transaction known to this leader; not on disk."""
        self.last = -1
        self.seen_ms = 0
        self.batches: list[RememberedBatch] = []


class ProducerView(NamedTuple):
    """A producer as an administrator sees it."""

    producer_id: int
    epoch: int
    last_sequence: int
    seen_ms: int
    coordinator_term: int
    first_offset: Offset
    """Where its open transaction starts; -1 if it has none."""


class Producers:
    """The producers of one partition, longest idle first. Pure: time is passed in."""

    def __init__(self, config: ProducerConfig) -> None:
        self.transactions = PartitionTransactions()
        self._config = config
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def configure(self, config: ProducerConfig) -> None:
        """Apply new settings."""
        self._config = config

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, view: BatchView) -> RememberedBatch | None:
        """Return the batch that `view` repeats, or None if it should be appended.

        Raises StaleProducerEpoch, OutOfOrderSequence, SequenceReused, and what `_check_open` does.
        Changes nothing.
        """
        if view.producer_id == NO_PRODUCER_ID:
            return None
        if view.producer_id < 0 or view.producer_epoch < 0 or view.base_sequence < 0:
            raise MalformedBatch("a producer's id, epoch and sequence cannot be negative")
        known = self._producers.get(view.producer_id)
        if known is None:
            return None
        epoch = view.producer_epoch
        if self.transactions.open_count:
            self._check_open(view, known)
        if epoch == known.epoch:
            if view.base_sequence == (known.last + 1) & SEQUENCE_MASK:
                return None
            return self._repeated(known, view)
        if epoch < known.epoch:
            raise StaleProducerEpoch(view.producer_id, epoch, known.epoch)
        if view.base_sequence != 0:
            raise OutOfOrderSequence(view.producer_id, view.base_sequence, 0)
        return None

    def _repeated(self, known: _Producer, view: BatchView) -> RememberedBatch:
        """Return the recent batch that this repeats; raises if it repeats none."""
        base = view.base_sequence
        last = (base + view.last_offset_delta) & SEQUENCE_MASK
        since: Offset | None = 0
        if view.is_transactional:
            # Clients end a transaction once all its batches are answered or given up.
            since = self.transactions.first_offset(view.producer_id)
        if since is not None:
            for batch in known.batches:
                is_same = batch.base_sequence == base and batch.last_sequence == last
                if is_same and batch.base_offset >= since:
                    return batch
        expected = (known.last + 1) & SEQUENCE_MASK
        if view.is_transactional and (expected - base) & SEQUENCE_MASK < _BEHIND_MAX:
            raise SequenceReused(view.producer_id, base, expected)
        raise OutOfOrderSequence(view.producer_id, base, expected)

    def _check_open(self, view: BatchView, known: _Producer) -> None:
        """Refuse a batch that would mix with the producer's open transaction."""
        if self.transactions.first_offset(view.producer_id) is None:
            return
        if not view.is_transactional:
            raise InvalidTransactionState("the producer has an open transaction here")
        if view.producer_epoch > known.epoch:
            # With v2 the end raises the epoch and is answered before its marker arrives here.
            raise ConcurrentTransactions("the previous transaction has not ended here yet")

    def apply(self, view: BatchView, base_offset: Offset, now_ms: int) -> None:
        """Apply a batch that is in the log at `base_offset`; call in log order."""
        base = view.base_sequence
        if view.producer_id < 0:
            return
        if base < 0:
            if view.attributes & CONTROL_BIT:
                self._apply_marker(view, base_offset, now_ms)
            return
        known = self._found(view)
        if view.attributes & TRANSACTIONAL_BIT:
            self.transactions.wrote(view.producer_id, base_offset)
        delta = view.last_offset_delta
        known.last = last = (base + delta) & SEQUENCE_MASK
        known.seen_ms = now_ms
        batches = known.batches
        batches.append(RememberedBatch(base, last, base_offset, view.max_timestamp_ms))
        if len(batches) > BATCHES_REMEMBERED:
            del batches[0]

    def _found(self, view: BatchView) -> _Producer:
        """Return the state of the batch's producer, at the batch's epoch."""
        producers = self._producers
        known = producers.get(view.producer_id)
        if known is None:
            known = producers[view.producer_id] = _Producer(view.producer_epoch)
            if len(producers) > self._config.producers_max:
                self.shrink(self._config.producers_max)
        else:
            producers.move_to_end(view.producer_id)
            if known.epoch != view.producer_epoch:
                known.epoch, known.last, known.batches = view.producer_epoch, -1, []
        return known

    def shrink(self, count: int) -> None:
        """Forget idle producers until `count` are left; those with a transaction stay."""
        first_offset = self.transactions.first_offset
        idle = (one for one in self._producers if first_offset(one) is None)
        for producer_id in list(islice(idle, max(len(self._producers) - count, 0))):
            del self._producers[producer_id]

    def _apply_marker(self, view: BatchView, offset: Offset, now_ms: int) -> None:
        try:
            control = read_control(view)
        except UnsupportedBatch:
            return  # does not end a transaction
        known = self._found(view)
        known.seen_ms = now_ms
        known.coordinator_term = control.coordinator_epoch
        is_commit = control.kind is ControlType.COMMIT
        self.transactions.ended(view.producer_id, offset, is_commit=is_commit)

    def expire(self, ages: Ages) -> None:
        """Forget producers that have been idle for too long."""
        producers = self._producers
        while producers:  # terminates: each pass drops a producer or marks it as recent
            producer_id, known = next(iter(producers.items()))
            if ages.of(known.seen_ms) <= self._config.expiration_ms:
                return
            if self.transactions.first_offset(producer_id) is None:
                del producers[producer_id]
            else:  # its transaction is still open
                known.seen_ms = ages.now_ms
                producers.move_to_end(producer_id)

    # ── transactions ─────────────────────────────────────────────────────────────────────────

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Return whether the producer has an open transaction here, at this epoch."""
        if self.transactions.first_offset(producer_id) is None:
            return False
        known = self._producers.get(producer_id)
        return known is not None and known.epoch == epoch

    def epoch_of(self, producer_id: int) -> int:
        """Return a producer's newest known epoch; -1 if it is unknown."""
        known = self._producers.get(producer_id)
        return -1 if known is None else known.epoch

    def number_of(self, producer_id: int) -> int:
        """Return the number of the producer's newest transaction; NO_NUMBER if unknown."""
        known = self._producers.get(producer_id)
        return NO_NUMBER if known is None else known.number

    def set_number(self, producer_id: int, number: int) -> None:
        """Learn the number of a producer's newest transaction."""
        known = self._producers.get(producer_id)
        if known is not None and number > known.number:
            known.number = number

    def coordinator_term_of(self, producer_id: int) -> int:
        """Return the term of the coordinator that ended its last transaction here, or -1."""
        known = self._producers.get(producer_id)
        return -1 if known is None else known.coordinator_term

    def views(self) -> Iterator[ProducerView]:
        """Return all producers for administrators."""
        for producer_id, known in self._producers.items():
            first = self.transactions.first_offset(producer_id)
            yield ProducerView(
                producer_id,
                known.epoch,
                known.last,
                known.seen_ms,
                known.coordinator_term,
                NO_TRANSACTION if first is None else first,
            )

    # ── on disk ──────────────────────────────────────────────────────────────────────────────

    def state(self) -> bytes:
        """Serialize the state as described in `docs/reference/format-snapshot.md`."""
        out = bytearray(_HEAD.pack(STATE_VERSION, len(self._producers)))
        for producer_id, known in self._producers.items():
            out += _PRODUCER.pack(
                producer_id, known.epoch, known.seen_ms, _UNUSED, len(known.batches)
            )
            for batch in known.batches:
                out += _BATCH.pack(*batch)
            first = self.transactions.first_offset(producer_id)
            out += _TRANSACTION.pack(
                known.coordinator_term, NO_TRANSACTION if first is None else first
            )
        return bytes(out) + self.transactions.state()

    def before(self, offset: Offset) -> "Producers":
        """Return the state known from before the record at `offset`.

        That suffices for readers that start there: if no earlier batch of a producer is remembered,
        all its remembered batches lie behind `offset`.
        """
        known_before = Producers(self._config)
        for producer_id, known in self._producers.items():
            batches = [batch for batch in known.batches if batch.base_offset < offset]
            if not batches:
                continue
            older = _Producer(known.epoch)
            older.batches = batches
            older.last = batches[-1].last_sequence
            older.seen_ms = known.seen_ms
            known_before._producers[producer_id] = older
        return known_before

    @classmethod
    def from_state(
        cls, state: bytes | bytearray, config: ProducerConfig, now_ms: int
    ) -> "Producers":
        """Restore the producers from `state`; raises NewerFormat."""
        version, count = _HEAD.unpack_from(state)
        if version > STATE_VERSION:
            raise NewerFormat("a producer snapshot's state", version, STATE_VERSION)
        producers = cls(config)
        position = _HEAD.size
        opened: list[tuple[Offset, int]] = []
        for _ in range(count):
            producer_id, epoch, seen_ms, _, batches = _PRODUCER.unpack_from(state, position)
            position += _PRODUCER.size
            known = _Producer(epoch)
            known.seen_ms = min(seen_ms, now_ms)  # else a clock set back would keep it too long
            for _ in range(batches):
                known.batches.append(RememberedBatch(*_BATCH.unpack_from(state, position)))
                position += _BATCH.size
            known.last = known.batches[-1].last_sequence if known.batches else -1
            producers._producers[producer_id] = known
            if version >= _TRANSACTIONS_SINCE:
                known.coordinator_term, first = _TRANSACTION.unpack_from(state, position)
                position += _TRANSACTION.size
                if first != NO_TRANSACTION:
                    opened.append((first, producer_id))
        for first, producer_id in sorted(opened):
            producers.transactions.wrote(producer_id, first)
        if version >= _TRANSACTIONS_SINCE:
            producers.transactions.load(state, position)
        return producers
