"""What is known of a partition's producers: enough to tell a retry from a new batch.

A producer numbers its records per partition (the *sequence*, which wraps at 2³¹) and resends a
batch whose answer it did not get. The numbers are in the batch's header, so this state follows from
the headers of the log alone, in order: whoever reads the same log knows the same. The last five
batches of each producer are remembered, because a producer has at most five on their way. Only what
equals one of them is a repetition, and in a transaction only one of the same transaction: a client
that gave up a batch and aborted may number other records like it.

Of an unknown producer any first sequence is taken, as Kafka does since 2.5: its state may have been
dropped for being idle, and to refuse it would stop a healthy producer for good.

The batches and markers of transactions are in the log too, so which of them are open follows from
it in the same way (`broker/partition_transactions.py`).
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import NamedTuple

from kafkaesque.ages import Ages
from kafkaesque.broker.partition_transactions import PartitionTransactions
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import (
    MalformedBatch,
    NewerFormat,
    OutOfOrderSequence,
    SequenceReused,
    StaleProducerEpoch,
    UnsupportedBatch,
)
from kafkaesque.machines.transaction_errors import ConcurrentTransactions, InvalidTransactionState
from kafkaesque.record.control import ControlType, read_control
from kafkaesque.record.view import CONTROL_BIT, NO_PRODUCER_ID, TRANSACTIONAL_BIT, BatchView
from kafkaesque.types import Offset

BATCHES_REMEMBERED = 5
"""Of each producer: Kafka's clients have at most this many requests on their way."""

SEQUENCE_MASK = (1 << 31) - 1
STATE_VERSION = 2
NO_NUMBER = -1
NO_TRANSACTION = -1

_TRANSACTIONS_SINCE = 2
_BEHIND_MAX = 1 << 30
"""Half of all sequences: further back, behind and ahead could not be told apart."""

_HEAD = Struct(">BI")
_PRODUCER = Struct(">qhqiB")
_BATCH = Struct(">iiqq")
_TRANSACTION = Struct(">iq")
_UNUSED = 0
"""Where a count lay that nobody needs any more; those who wrote it understand 0."""


class RememberedBatch(NamedTuple):
    """One of a producer's last batches: its sequences, and where and when it was appended."""

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
        """Of the coordinator that wrote its last marker; -1 before the first."""
        self.number = NO_NUMBER
        """Of its newest transaction that this leader knows by number; not on disk."""
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
    """Where its open transaction begins; -1 if it has none."""


class Producers:
    """The producers of one partition, those idle longest first. Pure: time is given."""

    def __init__(self, config: ProducerConfig) -> None:
        self.transactions = PartitionTransactions()
        self._config = config
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def configure(self, config: ProducerConfig) -> None:
        """Let other settings hold."""
        self._config = config

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, view: BatchView) -> RememberedBatch | None:
        """Return the batch that `view` repeats, None if it is to be appended.

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
        """Return which of the last batches this repeats; raises for what is none of them."""
        base = view.base_sequence
        last = (base + view.last_offset_delta) & SEQUENCE_MASK
        since: Offset | None = 0
        if view.is_transactional:
            # Clients end a transaction when all its batches are answered or given up.
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
        """Refuse what would mix with the producer's open transaction."""
        if self.transactions.first_offset(view.producer_id) is None:
            return
        if not view.is_transactional:
            raise InvalidTransactionState("the producer has an open transaction here")
        if view.producer_epoch > known.epoch:
            # With v2 the end raises the epoch and is answered before the marker is here.
            raise ConcurrentTransactions("the transaction before is not yet ended here")

    def apply(self, view: BatchView, base_offset: Offset, now_ms: int) -> None:
        """Learn of a batch that is in the log, at `base_offset`; in the order of the log."""
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
        """Return what is known of the batch's producer, at the batch's epoch."""
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
        """Forget producers until no more than `count` are left, or those with a transaction."""
        first_offset = self.transactions.first_offset
        idle = (one for one in self._producers if first_offset(one) is None)
        for producer_id in list(islice(idle, max(len(self._producers) - count, 0))):
            del self._producers[producer_id]

    def _apply_marker(self, view: BatchView, offset: Offset, now_ms: int) -> None:
        try:
            control = read_control(view)
        except UnsupportedBatch:
            return  # nothing that ends a transaction
        known = self._found(view)
        known.seen_ms = now_ms
        known.coordinator_term = control.coordinator_epoch
        is_commit = control.kind is ControlType.COMMIT
        self.transactions.ended(view.producer_id, offset, is_commit=is_commit)

    def expire(self, ages: Ages) -> None:
        """Forget the producers that have been idle for too long."""
        producers = self._producers
        while producers:  # ends: each turn drops one, or makes it young
            producer_id, known = next(iter(producers.items()))
            if ages.of(known.seen_ms) <= self._config.expiration_ms:
                return
            if self.transactions.first_offset(producer_id) is None:
                del producers[producer_id]
            else:  # it is not done yet
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
        """Return the newest epoch that is known of a producer; -1 if it is not known."""
        known = self._producers.get(producer_id)
        return -1 if known is None else known.epoch

    def number_of(self, producer_id: int) -> int:
        """Return the number of the producer's newest transaction; NO_NUMBER if it is not known."""
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
        """Return all producers, for an administrator."""
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
        """Return all of it as `docs/reference/format-snapshot.md` says."""
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
        """Return what is still known of the time before the record at `offset`.

        That is enough for whoever reads the log from there on: a producer of whom nothing is
        remembered from before has all that is remembered behind it.
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
    def from_state(cls, state: bytes, config: ProducerConfig, now_ms: int) -> "Producers":
        """Return what `state` was taken of; raises NewerFormat."""
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
            known.seen_ms = min(seen_ms, now_ms)  # a clock that was set back must not keep it
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
