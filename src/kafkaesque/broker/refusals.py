"""Which batches of numbered producers a partition refused for now, so that they will come again.

A producer has several batches on their way. If one is refused because leadership is being handed
over, or for want of replicas or room, and the reason is gone when the next one comes, that one does
not follow what is in the log. To call that a gap would be wrong: the producer is about to fill it.
librdkafka gives all that is under way new numbers when it hears of a gap, and what was written but
not yet acknowledged comes twice. Of a producer that is not known yet any number would be taken, and
the first batch would then be too late. So whatever comes behind a refused batch is refused as well.

Kafka needs this less: who ceases to lead there does not lead again a moment later. Here a transfer
that is called off goes on with the same leader. It is soft state, in no log: with the process go
the connections on which more could come.
"""

from kafkaesque.broker.producers import SEQUENCE_MASK, Producers, RememberedBatch
from kafkaesque.clock import Clock
from kafkaesque.errors import (
    BatchError,
    DiskFull,
    KafkaesqueError,
    NotCoordinator,
    NotEnoughReplicas,
    OutOfOrderSequence,
    PartitionOffline,
    RaftError,
)
from kafkaesque.machines.transaction_errors import ConcurrentTransactions, ProducerIdNeeded
from kafkaesque.record.view import BatchView

FOR_NOW = (
    RaftError,
    NotEnoughReplicas,
    DiskFull,
    PartitionOffline,
    NotCoordinator,
    ConcurrentTransactions,
    ProducerIdNeeded,
)
"""Refusals of a batch after which its producer sends it again."""

REFUSED_MAX = 1000
"""Producers remembered; beyond it the one refused first is forgotten, as Kafka forgets all."""

REFUSED_MS_MAX = 60_000
"""A batch that did not come again for this long was given up by its producer: the gap is one.

That is twice the time for which clients wait for an answer by default.
"""

_AHEAD_MAX = 1 << 30
"""Half of all sequences: further on, behind and ahead could not be told apart."""


class BehindRefused(RaftError):
    """A batch of the same producer before this one was refused for now; both may come again."""


class _Refused:
    """What was refused of one producer since something of it was taken."""

    __slots__ = ("at_ms", "epoch", "first", "newest")

    def __init__(self, epoch: int, sequence: int) -> None:
        self.epoch = epoch
        self.first = self.newest = sequence
        self.at_ms = 0


class Refusals:
    """The refused batches of one partition."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_producer: dict[int, _Refused] = {}
        """Nearly always empty: then nothing here need be asked."""

    def refused(self, batches: memoryview, error: KafkaesqueError) -> None:
        """Learn that a batch was refused; it counts if its producer will send it again."""
        if not isinstance(error, FOR_NOW):
            return
        try:
            view = BatchView(batches)
        except BatchError:
            return
        producer_id, sequence = view.producer_id, view.base_sequence
        if producer_id < 0 or sequence < 0:
            return
        known = self.by_producer.get(producer_id)
        if known is None or known.epoch != view.producer_epoch:
            if len(self.by_producer) >= REFUSED_MAX:
                del self.by_producer[next(iter(self.by_producer))]
            known = self.by_producer[producer_id] = _Refused(view.producer_epoch, sequence)
        if not isinstance(error, BehindRefused):
            known.at_ms = self._clock.monotonic_ms()
        if _is_ahead(sequence, known.newest):
            known.newest = sequence
        elif _is_ahead(known.first, sequence):
            known.first = sequence

    def taken(self, view: BatchView) -> None:
        """Learn that a batch was taken: what was refused before it is not waited for any more."""
        known = self.by_producer.get(view.producer_id)
        if known is not None and not _is_ahead(known.newest, view.base_sequence):
            del self.by_producer[view.producer_id]

    def check(self, view: BatchView, producers: Producers) -> RememberedBatch | None:
        """Return what `Producers.check` does; raises BehindRefused for what only seems a gap."""
        try:
            repeated = producers.check(view)
        except OutOfOrderSequence as gap:
            if self._is_behind(view, gap.expected):
                raise BehindRefused("a batch before this one was refused for now") from gap
            raise
        if producers.epoch_of(view.producer_id) < 0 and self._is_behind(view, None):
            raise BehindRefused("the producer's first batch was refused for now")
        return repeated

    def _is_behind(self, view: BatchView, expected: int | None) -> bool:
        """Return whether a batch that would leave a gap comes behind one that was refused.

        `expected` is what would leave none; None if nothing is known of the producer.
        """
        known = self.by_producer.get(view.producer_id)
        if known is None or known.epoch != view.producer_epoch:
            return False
        if self._clock.monotonic_ms() - known.at_ms >= REFUSED_MS_MAX:
            del self.by_producer[view.producer_id]
            return False
        if expected is None:
            return _is_ahead(view.base_sequence, known.first)
        is_waited_for = known.newest == expected or _is_ahead(known.newest, expected)
        return is_waited_for and _is_ahead(view.base_sequence, expected)


def _is_ahead(sequence: int, other: int) -> bool:
    return 0 < (sequence - other) & SEQUENCE_MASK < _AHEAD_MAX
