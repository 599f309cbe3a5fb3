"""One partition as clients see it: append, read committed records, look up offsets."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kafkaesque.broker.partition import time_lookup
from kafkaesque.broker.partition.admission import Admission
from kafkaesque.broker.partition.partition_errors import (
    FutureTerm,
    NotEnoughReplicas,
    NotHere,
    OffsetNotAvailable,
    StaleProducerEpoch,
    StaleTerm,
)
from kafkaesque.broker.partition.partition_transactions import Aborted
from kafkaesque.broker.partition.producer_keeper import ProducerKeeper
from kafkaesque.broker.partition.producers import NO_NUMBER, ProducerView, RememberedBatch
from kafkaesque.broker.partition.refusals import FOR_NOW, Refusals
from kafkaesque.broker.partition.transaction_ports import Guards
from kafkaesque.broker.replication.end_proof import EndProof
from kafkaesque.broker.replication.log_settings import configure_log, internal
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.verified_reads import cut_at, damage_noted, offline, read_sound
from kafkaesque.broker.replication.watermark import Done, Outcome
from kafkaesque.clock import Clock
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import KafkaesqueError, LeaderNotReady, NotLeader, UnknownTopic
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.machines.transactions.transaction_errors import (
    CoordinatorFenced,
    TransactionUnverified,
)
from kafkaesque.machines.transactions.transaction_questions import Marker
from kafkaesque.record.control import ControlType, build_control_batch
from kafkaesque.record.view import TRANSACTIONAL_BIT, BatchView
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import Offset, Term

EMPTY = memoryview(b"")

NO_APPEND_TIME = -1


class Appended(NamedTuple):
    """Where a batch is in the log, and the broker's time if its topic keeps that."""

    offset: Offset
    append_time_ms: int = NO_APPEND_TIME


class Partition:
    """The client-facing side of a replica. One thread owns it; slow work reports to callbacks."""

    def __init__(
        self,
        replica: Replica,
        settings: TopicSettings,
        clock: Clock,
        config: ProducerConfig,
        *,
        is_internal: bool,
    ) -> None:
        self.replica = replica
        self.producers = ProducerKeeper(replica, clock, config)
        self._gone: UnknownTopic | NotHere | None = None
        self.guards = Guards()
        """The checks of transactional writes in progress."""
        self._clock = clock
        self._refusals = Refusals(clock)
        self._end_proof = EndProof(replica, clock)
        self._is_internal = is_internal
        if not is_internal:  # for machines, an install carries the machine's state instead
            replica.keep_state(self.producers)
        self.configure(settings)
        self._waiting: dict[Callable[[], None], None] = {}
        replica.on_commit.append(self._wake)
        replica.on_serving.append(self._on_serving)
        if replica.is_serving:
            self.producers.serving_changed()
            self._refusals.took_over(self.term)

    def configure(self, settings: TopicSettings) -> None:
        """Apply new settings; those of the log take effect with its next append.

        Partitions of machines are always synced, and neither deleted by age nor compacted, whatever
        the settings.
        """
        log = self.replica.log
        self.settings = internal(settings, log.segments.config) if self._is_internal else settings
        self._admission = Admission(self.settings)
        configure_log(log, self.settings)

    @property
    def term(self) -> Term:
        """The replica's term, which clients know as the leader epoch."""
        return self.replica.raft.term

    @property
    def first_offset(self) -> Offset:
        """The first offset that can be read."""
        return self.replica.log.start.first_offset

    @property
    def high_watermark(self) -> Offset:
        """The first offset that cannot be read yet."""
        return self.replica.high_watermark

    @property
    def stable_offset(self) -> Offset:
        """The last stable offset: the first that read-committed consumers cannot read yet."""
        self._check_serving()
        return self.producers.stable_offset()

    @property
    def has_aborted(self) -> bool:
        """Whether any aborted transaction is remembered."""
        return self.producers.known.transactions.aborted_count > 0

    def aborted(self, first: Offset, end: Offset) -> list[Aborted]:
        """Return the aborted transactions that have records in [first, end)."""
        self._check_serving()
        return self.producers.aborted(first, end)

    def producer_views(self) -> Iterator[ProducerView]:
        """Return its producers for administrators; works on any replica."""
        self._check_here()
        self.producers.follow()
        self._check_here()
        return self.producers.known.views()

    @property
    def size_bytes(self) -> int:
        """The bytes of its batches on disk."""
        return self.replica.log.segments.size_bytes

    @property
    def is_settled(self) -> bool:
        """Whether trims are durable and no other change waits for the disk."""
        return self.replica.log.is_settled

    def append(
        self,
        batches: memoryview,
        done: Done,
        *,
        needs_all: bool = False,
        verified: int = NO_NUMBER,
    ) -> Appended:
        """Append a producer's batch, or find that it is a duplicate; `done` gets the outcome.

        Writable memory is taken over: the batch is stamped in place. `needs_all` is for callers
        that wait until the batch is safe (acks=all): committed, and durable on as many replicas as
        the topic requires. A duplicate is answered with the offset of the original and shares its
        outcome. Raises BatchError, the errors of the topic's settings and the producer's sequence,
        and NotEnoughReplicas; then nothing has happened. Raises DiskFull when there is no room.
        With `needs_all` nothing has happened then either: clients take that error for "not
        written", and may renumber the same records. Without it, DiskFull is also raised for a
        batch that is appended later, when there is room.

        A transactional batch is accepted if its producer's transaction is open here, or if
        `verified` is the number that its coordinator confirmed; otherwise raises
        TransactionUnverified.
        """
        try:
            return self._append(batches, done, needs_all=needs_all, verified=verified)
        except FOR_NOW as error:
            self._refusals.refused(batches, error)
            raise

    def _append(
        self, batches: memoryview, done: Done, *, needs_all: bool, verified: int
    ) -> Appended:
        if not self.replica.is_serving:
            self._check_serving()
        admission = self._admission
        copies = self.settings.min_insync_replicas if needs_all else 1
        view = admission.check(batches)
        repeated = self._check_order(view)
        if repeated is not None:  # even with too few replicas now: it is written
            self.replica.when_held(repeated.base_offset, copies, done)
            is_append_time = admission.is_append_time
            time_ms = repeated.timestamp_ms if is_append_time else NO_APPEND_TIME
            return Appended(repeated.base_offset, time_ms)
        if needs_all:
            in_sync = self.replica.in_sync
            if in_sync is None or in_sync.is_cut_off or len(in_sync.nodes) < copies:
                self._check_replicas()
        is_transactional = view.attributes & TRANSACTIONAL_BIT
        if is_transactional and verified == NO_NUMBER and not self.has_open(view):
            raise TransactionUnverified("the partition does not belong to the transaction")
        now_ms = self._clock.now_ms() if admission.is_append_time else NO_APPEND_TIME
        if not admission.is_plain or view.data.readonly:
            view = admission.prepare(view, now_ms)
        # Without acks=all the response goes out at once, so the batch must be written by then.
        append = self.replica.gather if needs_all else self.replica.propose
        offset = append(view.data, done, view.last_offset_delta + 1, copies)
        self.producers.appended(view, offset)
        if self._refusals.by_producer:
            self._refusals.taken(view)
        if is_transactional:
            self.producers.known.set_number(view.producer_id, verified)
        if not needs_all:
            self.replica.check_room()  # else a producer that does not wait would never learn of it
        return Appended(offset, now_ms)

    def needs_check(self, view: BatchView) -> bool:
        """Return whether a batch's coordinator must be asked before it can be appended.

        Not needed if its producer has an open transaction here, or if the batch is a duplicate;
        raises if it is refused.
        """
        try:
            if not self.replica.is_serving:
                self._check_serving()
            return self._check_order(view) is None and not self.has_open(view)
        except FOR_NOW as error:
            self._refusals.refused(view.data, error)
            raise

    def refused(self, batches: memoryview, error: KafkaesqueError) -> None:
        """Note a batch that was refused elsewhere and so never reached `append`."""
        self._refusals.refused(batches, error)

    def _check_order(self, view: BatchView) -> RememberedBatch | None:
        """Return the batch that `view` repeats; raises if its sequence is out of order."""
        refusals = self._refusals
        if refusals.by_producer or refusals.is_new_leader:
            return refusals.check(view, self.producers.known)
        return self.producers.check(view)

    def has_open(self, view: BatchView) -> bool:
        """Return whether the batch's producer has an open transaction here."""
        return self.producers.known.is_open(view.producer_id, view.producer_epoch)

    def end_transaction(self, marker: Marker, done: Done) -> None:
        """Write the end of a producer's transaction; `done` is called when it is committed.

        An end that was already written, or that belongs to a transaction older than the producer's
        newest here, is not written again. Raises CoordinatorFenced, StaleProducerEpoch, DiskFull.
        """
        self._check_serving()
        producer_id, epoch = marker.producer_id, marker.epoch
        known = self.producers.known
        if epoch < known.epoch_of(producer_id):
            raise StaleProducerEpoch(producer_id, epoch, known.epoch_of(producer_id))
        if marker.coordinator_term < known.coordinator_term_of(producer_id):
            raise CoordinatorFenced("a newer coordinator has ended a transaction here")
        if marker.number != NO_NUMBER:
            newest = known.number_of(producer_id)
            is_open = known.transactions.first_offset(producer_id) is not None
            if marker.number < newest or (marker.number == newest and not is_open):
                self.replica.when_committed(done)
                return
        self.guards.marked(producer_id)
        batch = build_control_batch(
            kind=ControlType.COMMIT if marker.is_commit else ControlType.ABORT,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=marker.coordinator_term,
            timestamp_ms=self._clock.now_ms(),
            base_offset=0,
            term=self.term,
        )
        offset = self.replica.propose(batch, done, 1)
        self.producers.appended(BatchView(batch), offset)
        known.set_number(producer_id, marker.number)

    def check_term(self, known: Term) -> None:
        """Raise unless this replica leads in the term that the client knows; -1 is any term."""
        self._check_serving()
        self._compare_term(known)

    def check_term_as_follower(self, known: Term) -> None:
        """Raise unless this replica follows a leader in the term that the client knows."""
        self._check_following()
        self._compare_term(known)

    def _compare_term(self, known: Term) -> None:
        if known in (-1, self.term):
            return
        if known < self.term:
            raise StaleTerm(f"term {known} is over, the leader's is {self.term}")
        raise FutureTerm(f"term {known} is not known here yet, the leader's is {self.term}")

    def read(
        self,
        offset: Offset,
        bytes_max: int,
        *,
        first_always: bool = True,
        below: Offset | None = None,
    ) -> memoryview:
        """Return whole committed batches starting at the one that covers `offset`; none at the end.

        The first may be larger than `bytes_max`, unless `first_always` is False. Reading stops
        before `below`. Raises OffsetOutOfRange, or NotLeader until that is certain
        (`broker/replication/end_proof.py`).
        """
        replica = self.replica
        if not replica.is_serving:
            self._check_serving()
        if not replica.log.start.first_offset <= offset <= replica.high_watermark:
            if offset > replica.high_watermark:
                self._end_proof.check(offset)
            raise OffsetOutOfRange(offset, self.first_offset, self.high_watermark)
        return self._read(offset, bytes_max, first_always=first_always, below=below)

    def read_as_follower(
        self, offset: Offset, bytes_max: int, *, first_always: bool = True
    ) -> memoryview:
        """Return the same from a follower: up to what it knows to be committed.

        Raises OffsetNotAvailable for records that it has but does not know to be committed, and
        OffsetOutOfRange for records it lacks: then the client must ask the leader (KIP-392).
        """
        self._check_following()
        end, log_end = self.high_watermark, self.replica.log.end_offset
        if not self.first_offset <= offset <= log_end:
            raise OffsetOutOfRange(offset, self.first_offset, log_end)
        if offset > end:
            raise OffsetNotAvailable(f"offset {offset} is not known to be committed, {end} is")
        return self._read(offset, bytes_max, first_always=first_always)

    def _read(
        self, offset: Offset, bytes_max: int, *, first_always: bool, below: Offset | None = None
    ) -> memoryview:
        if offset >= self.replica.high_watermark:  # the common case of waiting consumers
            return EMPTY
        log, end = self.replica.log, self._readable_end
        if below is not None and below < end:
            end = below
        if offset >= end or (bytes_max <= 0 and not first_always):
            return EMPTY
        data = log.segments.tail(offset)
        is_all = end == log.end_offset and log.is_settled
        if data and len(data) <= bytes_max:
            return data if is_all else cut_at(data, end)
        stop = None if is_all else end
        return read_sound(self.replica, offset, bytes_max, first_always=first_always, end=stop)

    @property
    def _readable_end(self) -> Offset:
        """Up to here the segments hold what is committed.

        While a cut waits for the disk they still hold the old data; the stable part is never cut.
        """
        log, end = self.replica.log, self.high_watermark
        if log.is_settled:
            return end
        return min(end, log.offset_at(max(log.stable, log.start.index)))

    def bytes_from(self, offset: Offset) -> int:
        """Return roughly how many bytes can be read from `offset`, without reading any.

        Never too low; too high by at most a few kilobytes and a batch, or by uncommitted data.
        """
        if not self.first_offset <= offset < self.high_watermark:
            return 0
        return self.replica.log.segments.bytes_from(offset)

    def term_of(self, offset: Offset) -> Term:
        """Return the term in which the record at `offset` was, or would be, written."""
        log = self.replica.log
        return log.term_at(log.index_at(offset))

    def end_of_term(self, term: Term) -> tuple[Term, Offset] | None:
        """Return the newest term that is at most `term`, and its end; None if none is that old."""
        self._check_serving()
        return self.replica.log.end_of_term(term)

    def find_time(self, timestamp_ms: int, below: Offset) -> tuple[Offset, int] | None:
        """Return offset and time of the first record before `below` at or after `timestamp_ms`."""
        self._check_serving()
        segments = self.replica.log.segments
        end = min(below, self._readable_end)
        with damage_noted(self.replica):
            return time_lookup.find_time(segments, timestamp_ms, self.first_offset, end)

    def newest_time(self, below: Offset) -> tuple[Offset, int] | None:
        """Return offset and time of the record with the greatest time, if before `below`."""
        self._check_serving()
        segments = self.replica.log.segments
        end = min(below, self._readable_end)
        with damage_noted(self.replica):
            return time_lookup.newest_time(segments, self.first_offset, end)

    def trim(self, offset: Offset) -> bool:
        """Delete the records before `offset`; durable once the partition is settled.

        Does nothing and returns False while not all of it is durable here: retry after the next
        round. Raises OffsetOutOfRange for an uncommitted offset.
        """
        self._check_serving()
        end = self.high_watermark
        if not 0 <= offset <= end:
            raise OffsetOutOfRange(offset, self.first_offset, end)
        log = self.replica.log
        if offset > log.offset_at(log.stable):
            return False
        log.trim(offset)
        return True

    def close(self) -> None:
        """Stop serving: the topic was deleted. All waiting callers are notified."""
        self._gone = UnknownTopic("the topic was deleted")
        self.replica.retire(Outcome.DELETED)
        self._wake()

    def leave(self) -> None:
        """Stop serving: the partition is on other brokers now."""
        self._gone = NotHere("this partition has been moved to other brokers")
        self.replica.retire(Outcome.UNKNOWN)
        self._wake()

    def when_more(self, callback: Callable[[], None]) -> None:
        """Call back once when more is committed or leadership changes, unless told to `forget`."""
        self._waiting[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Cancel a callback; one that was called need not be cancelled."""
        self._waiting.pop(callback, None)

    def _check_serving(self) -> None:
        if not self.replica.is_serving:
            self._check_here()
            if self.replica.raft.leadership is None:
                raise NotLeader(self.replica.raft.leader)
            raise LeaderNotReady("the leader has not yet committed an entry of its own term")

    def _check_following(self) -> None:
        self._check_here()
        if self.replica.raft.leader is None:
            raise NotLeader(None)

    def _check_here(self) -> None:
        if self._gone is not None:
            raise type(self._gone)(str(self._gone))
        if self.replica.error is not None:
            raise offline(self.replica, self.replica.error)

    def _check_replicas(self) -> None:
        """Check again before refusing: the last check may be a heartbeat old."""
        replica, wanted = self.replica, self.settings.min_insync_replicas
        replica.look_in_sync()
        in_sync, replicas = replica.in_sync, len(replica.raft.voters.voters)
        if in_sync is None:
            raise NotLeader(None)
        if in_sync.is_cut_off:
            raise NotEnoughReplicas(f"no majority of the {replicas} replicas can be reached")
        found = len(in_sync.nodes)
        if found < wanted:
            raise NotEnoughReplicas(f"the topic wants {wanted} replicas in sync, it has {found}")

    def _on_serving(self) -> None:
        self.producers.serving_changed()
        if self.replica.is_serving:
            self._refusals.took_over(self.term)
        self._wake()

    def _wake(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for callback in waiting:
                callback()
