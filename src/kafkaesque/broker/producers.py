"""What is known of a partition's producers: enough to tell a retry from a new batch.

A producer numbers its records per partition (the *sequence*, which wraps at 2³¹) and resends a
batch whose answer it did not get. The numbers are in the batch's header, so this state follows from
the headers of the log alone, in order: whoever reads the same log knows the same. The last five
batches of each producer are remembered, because a producer has at most five on their way.

Of an unknown producer any first sequence is taken, as Kafka does since 2.5: its state may have been
dropped for being idle, and to refuse it would stop a healthy producer for good.
"""

from collections import OrderedDict
from struct import Struct
from typing import NamedTuple

from kafkaesque.config import ProducerConfig
from kafkaesque.errors import (
    DuplicateSequence,
    MalformedBatch,
    NewerFormat,
    OutOfOrderSequence,
    StaleProducerEpoch,
)
from kafkaesque.record.view import NO_PRODUCER_ID, BatchView
from kafkaesque.types import Offset

BATCHES_REMEMBERED = 5
"""Of each producer: Kafka's clients have at most this many requests on their way."""

SEQUENCE_MASK = (1 << 31) - 1
STATE_VERSION = 1

_RUN_MAX = 1 << 30
"""Half of all sequences: further back, behind and ahead could not be told apart."""

_HEAD = Struct(">BI")
_PRODUCER = Struct(">qhqiB")
_BATCH = Struct(">iiqq")


class RememberedBatch(NamedTuple):
    """One of a producer's last batches: its sequences, and where and when it was appended."""

    base_sequence: int
    last_sequence: int
    base_offset: Offset
    timestamp_ms: int


class _Producer:
    """One producer; `run` counts the sequences up to `last` that are known to be appended."""

    __slots__ = ("batches", "epoch", "last", "run", "seen_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last = -1
        self.run = 0
        self.seen_ms = 0
        self.batches: list[RememberedBatch] = []


class Producers:
    """The producers of one partition, those idle longest first. Pure: time is given."""

    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, view: BatchView) -> RememberedBatch | None:
        """Return the batch that `view` repeats, None if it is to be appended.

        Raises StaleProducerEpoch, OutOfOrderSequence, and DuplicateSequence for a repeated batch
        that is not remembered any more. Changes nothing.
        """
        if view.producer_id == NO_PRODUCER_ID:
            return None
        if view.producer_id < 0 or view.producer_epoch < 0 or view.base_sequence < 0:
            raise MalformedBatch("a producer's id, epoch and sequence cannot be negative")
        known = self._producers.get(view.producer_id)
        if known is None:
            return None
        epoch = view.producer_epoch
        if epoch == known.epoch:
            if view.base_sequence == (known.last + 1) & SEQUENCE_MASK:
                return None
            return _repeated(known, view)
        if epoch < known.epoch:
            raise StaleProducerEpoch(view.producer_id, epoch, known.epoch)
        if view.base_sequence != 0:
            raise OutOfOrderSequence(view.producer_id, view.base_sequence, 0)
        return None

    def apply(self, view: BatchView, base_offset: Offset, now_ms: int) -> None:
        """Learn of a batch that is in the log, at `base_offset`; in the order of the log."""
        base = view.base_sequence
        if view.producer_id < 0 or base < 0:
            return  # of no producer, or a marker of the broker's
        producers = self._producers
        known = producers.get(view.producer_id)
        if known is None:
            known = producers[view.producer_id] = _Producer(view.producer_epoch)
            if len(producers) > self._config.producers_max:
                producers.popitem(last=False)
        else:
            producers.move_to_end(view.producer_id)
            if known.epoch != view.producer_epoch:
                known.epoch, known.run, known.batches = view.producer_epoch, 0, []
        delta = view.last_offset_delta
        # Behind a hole (compaction, or a state that was dropped) nothing is known of what precedes.
        run = known.run if base == (known.last + 1) & SEQUENCE_MASK else 0
        known.run = min(run + delta + 1, _RUN_MAX)
        known.last = last = (base + delta) & SEQUENCE_MASK
        known.seen_ms = now_ms
        batches = known.batches
        batches.append(RememberedBatch(base, last, base_offset, view.max_timestamp_ms))
        if len(batches) > BATCHES_REMEMBERED:
            del batches[0]

    def expire(self, now_ms: int) -> None:
        """Forget the producers that have been idle for too long."""
        producers = self._producers
        oldest_ms = now_ms - self._config.expiration_ms
        while producers and next(iter(producers.values())).seen_ms < oldest_ms:
            producers.popitem(last=False)

    # ── on disk ──────────────────────────────────────────────────────────────────────────────

    def state(self) -> bytes:
        """Return all of it as `docs/reference/format-snapshot.md` says."""
        out = bytearray(_HEAD.pack(STATE_VERSION, len(self._producers)))
        for producer_id, known in self._producers.items():
            out += _PRODUCER.pack(
                producer_id, known.epoch, known.seen_ms, known.run, len(known.batches)
            )
            for batch in known.batches:
                out += _BATCH.pack(*batch)
        return bytes(out)

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
            older.run = max(0, known.run - ((known.last - older.last) & SEQUENCE_MASK))
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
        for _ in range(count):
            producer_id, epoch, seen_ms, run, batches = _PRODUCER.unpack_from(state, position)
            position += _PRODUCER.size
            known = _Producer(epoch)
            known.seen_ms = min(seen_ms, now_ms)  # a clock that was set back must not keep it
            known.run = run
            for _ in range(batches):
                known.batches.append(RememberedBatch(*_BATCH.unpack_from(state, position)))
                position += _BATCH.size
            known.last = known.batches[-1].last_sequence
            producers._producers[producer_id] = known
        return producers


def _repeated(known: _Producer, view: BatchView) -> RememberedBatch:
    """Return which of the last batches this repeats; raises for what is none of them."""
    base, delta = view.base_sequence, view.last_offset_delta
    last = (base + delta) & SEQUENCE_MASK
    for batch in known.batches:
        if batch.base_sequence == base and batch.last_sequence == last:
            return batch
    behind = (known.last - last) & SEQUENCE_MASK
    # To say "duplicate" is to say "it is in the log": only where every sequence is known to be.
    if behind + delta < known.run:
        raise DuplicateSequence(view.producer_id, base)
    raise OutOfOrderSequence(view.producer_id, base, (known.last + 1) & SEQUENCE_MASK)
