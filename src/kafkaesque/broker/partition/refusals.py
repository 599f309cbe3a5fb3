"""Remembers batches that a partition refused temporarily and that producers will resend.

A producer has several batches in flight. Suppose one is refused because of a leadership transfer,
or for lack of replicas or room, and the cause is gone when the next one arrives. Then that batch
does not follow what is in the log. Reporting a gap would be wrong: the producer is about to fill
it. On a gap librdkafka renumbers all batches in flight, and those written but not yet acknowledged
are duplicated. For an unknown producer any sequence would be accepted, and the first batch would
then come too late. So every batch behind a refused one is refused as well.

Kafka needs this less: a leader that loses leadership there does not lead again a moment later. Here
a cancelled transfer continues with the same leader. It is soft state, in no log: when the process
ends, so do the connections on which more batches could come.

A new leader has a second reason to wait. The first batches of a producer may have reached only the
previous leader, which never committed them. To the new leader that producer is unknown, and unknown
producers may start at any sequence; so it would accept a later batch that overtook the first ones.
The log would have a gap, and librdkafka takes the answer as proof that everything before that batch
was written, too: it reports lost records as delivered. So a leader that took over recently refuses,
for a while, a batch of an unknown producer that does not start at sequence 0.
"""

from kafkaesque.broker.partition.partition_errors import NotEnoughReplicas, OutOfOrderSequence
from kafkaesque.broker.partition.producers import SEQUENCE_MASK, Producers, RememberedBatch
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.clock import Clock
from kafkaesque.errors import DiskFull, KafkaesqueError, NotCoordinator, RaftError
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    ProducerIdNeeded,
)
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import BatchView
from kafkaesque.types import Term

FOR_NOW = (
    RaftError,
    NotEnoughReplicas,
    DiskFull,
    PartitionOffline,
    NotCoordinator,
    ConcurrentTransactions,
    ProducerIdNeeded,
)
"""Errors of a batch after which its producer resends it."""

REFUSED_MAX = 1000
"""Producers remembered; beyond it the oldest refusal is forgotten, as Kafka forgets all."""

REFUSED_MS_MAX = 60_000
"""A producer that has not resent a batch for this long gave it up: the gap is real.

That is twice the clients' default request timeout.
"""

FIRST_MS_MAX = 30_000
"""How long a new leader waits for the first batch of an unknown producer: the clients' default
request timeout. Then it accepts any sequence, as Kafka does: the producer may have been idle for so
long that its state expired, or its topic was deleted and created again."""

TAKEOVER_MS_MAX = 600_000
"""How long after taking over a leader does so. It covers the five minutes in which clients refresh
their metadata, and the minute for which they wait for an old leader that hangs."""

FIRST_TERM = 1
"""Before this term no other broker can have had a batch."""

_AHEAD_MAX = 1 << 30
"""Half of all sequences: beyond that, behind and ahead are indistinguishable."""


class BehindRefused(RaftError):
    """An earlier batch of the same producer was refused temporarily; both may be resent."""


class FirstBatchMissing(RaftError):
    """An unknown producer starts in the middle: a previous leader may have had what is missing."""


class _Refused:
    """The batches of one producer refused since its last accepted one."""

    __slots__ = ("at_ms", "begun_ms", "epoch", "first", "newest")

    def __init__(self, epoch: int, sequence: int, now_ms: int) -> None:
        self.epoch = epoch
        self.first = self.newest = sequence
        self.at_ms = 0
        self.begun_ms = now_ms


class Refusals:
    """The refused batches of one partition."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_producer: dict[int, _Refused] = {}
        """Nearly always empty: then no check here is needed, unless `is_new_leader`."""
        self.is_new_leader = False
        """Whether this replica leads since recently, and another one may have led before."""
        self._leads_since_ms = 0

    def took_over(self, term: Term) -> None:
        """Note that this replica leads in `term`."""
        self.is_new_leader = term > FIRST_TERM
        self._leads_since_ms = self._clock.monotonic_ms()

    def refused(self, batches: memoryview, error: KafkaesqueError) -> None:
        """Note a refused batch; it counts if its producer will resend it."""
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
            now_ms = self._clock.monotonic_ms()
            known = _Refused(view.producer_epoch, sequence, now_ms)
            self.by_producer[producer_id] = known
        if not isinstance(error, BehindRefused):
            known.at_ms = self._clock.monotonic_ms()
        if _is_ahead(sequence, known.newest):
            known.newest = sequence
        elif _is_ahead(known.first, sequence):
            known.first = sequence

    def taken(self, view: BatchView) -> None:
        """Note an accepted batch: batches refused before it are no longer expected."""
        known = self.by_producer.get(view.producer_id)
        if known is not None and not _is_ahead(known.newest, view.base_sequence):
            del self.by_producer[view.producer_id]

    def check(self, view: BatchView, producers: Producers) -> RememberedBatch | None:
        """Like `Producers.check`, but raises BehindRefused for what only seems a gap.

        Raises FirstBatchMissing for a gap that only a new leader can have.
        """
        try:
            repeated = producers.check(view)
        except OutOfOrderSequence as gap:
            if self._is_behind(view, gap.expected):
                raise BehindRefused("an earlier batch was refused temporarily") from gap
            raise
        if producers.epoch_of(view.producer_id) < 0:
            if self._is_behind(view, None):
                raise BehindRefused("the producer's first batch was refused temporarily")
            if self.is_new_leader and self._lacks_first(view):
                raise FirstBatchMissing("a previous leader may have had the producer's first batch")
        return repeated

    def _lacks_first(self, view: BatchView) -> bool:
        """Return whether to wait for batches before this one, of a producer that is unknown."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._leads_since_ms >= TAKEOVER_MS_MAX:
            self.is_new_leader = False
            return False
        if view.producer_id < 0 or view.base_sequence <= 0:
            return False
        known = self.by_producer.get(view.producer_id)
        if known is None or known.epoch != view.producer_epoch:
            return True
        return now_ms - known.begun_ms < FIRST_MS_MAX

    def _is_behind(self, view: BatchView, expected: int | None) -> bool:
        """Return whether a batch that would leave a gap follows a refused one.

        `expected` is the sequence that would leave none; None if the producer is unknown.
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
