"""Keeps the state of a partition's producers in step with its log, and on disk.

A leader applies each batch when it appends it, so the next one is already checked against it. A
replica that stops leading drops the state, which may hold batches that will never be committed, and
continues like every follower: from the newest snapshot through the headers of committed batches, a
slice at a time. A new leader first reads to the end of its log.

A snapshot holds only committed state, so truncation never goes back behind one. A snapshot beyond
the end of the log, which only a disk that loses synced data can cause, is removed when the log is
opened, before other records can take those offsets.

Retention and compaction remove records, and with them the state that follows from them. The state
in memory is not affected. On disk the newest snapshot must cover all that is removed: one is taken
whenever a segment starts, and compaction stays below `snapshot_offset`.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from kafkaesque.ages import Ages
from kafkaesque.broker.partition.partition_transactions import Aborted
from kafkaesque.broker.partition.producers import Producers, RememberedBatch
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.verified_reads import cut_at
from kafkaesque.clock import Clock, clock_ages
from kafkaesque.config import ProducerConfig
from kafkaesque.entry import LogStart
from kafkaesque.errors import LogError
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.producer_snapshot import (
    begin_snapshot,
    load_snapshot,
    remove_snapshot,
    snapshot_offsets,
    write_snapshot,
)
from kafkaesque.log.snapshot import PRODUCERS, SnapshotKind
from kafkaesque.raft.messages import StateOffer
from kafkaesque.record.crc import crc32c
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import NO_PRODUCER_ID, BatchView, first_damage, split_batches
from kafkaesque.types import Buffer, Index, Offset

SNAPSHOTS_KEPT = 2
"""The newest, and the one before it in case the newest is damaged."""

_READ_BYTES = 1 << 20
"""Read per step when catching up, and per upkeep on a follower."""

_Place: TypeAlias = tuple[Index, Index, LogStart, Offset]


class ProducerKeeper:
    """The producers of one partition. `check` and `appended` are the leader's hot path."""

    def __init__(self, replica: Replica, clock: Clock, config: ProducerConfig) -> None:
        self._replica = replica
        self._clock = clock
        self._config = config
        self.ages: Callable[[], Ages | None] = clock_ages(clock)
        """Returns how old things are; None while the wall clock is in doubt."""
        self._producers: Producers | None = None
        self._applied: Offset = 0
        """The state reflects the records before this offset."""
        self._bytes_since = 0
        self._taken: tuple[Offset, bytes] | None = None
        """A state to be written once it is committed."""
        self._is_writing = False
        self._failure: LogError | None = None
        """The error of the last snapshot write, if it failed."""
        self.snapshot_offset: Offset = replica.log.start.offset
        """Rebuilding the state needs the log only from here on: what precedes may be removed."""
        self._offered: tuple[Offset, bytes] | None = None
        """The state before the start of the log, as followers fetch it."""
        self._stuck_at: Offset | None = None
        """Where the log is damaged, on a replica that does not lead."""
        self._seen: _Place | None = None
        """The log's position when no work was left but to expire producers."""
        self._drop_unusable()

    def configure(self, config: ProducerConfig) -> None:
        """Apply new settings."""
        self._config = config
        if self._producers is not None:
            self._producers.configure(config)

    def __len__(self) -> int:
        return 0 if self._producers is None else len(self._producers)

    # ── leading ──────────────────────────────────────────────────────────────────────────────

    def check(self, view: BatchView) -> RememberedBatch | None:
        """Return the batch that `view` repeats, None for a new one; see `Producers.check`."""
        assert self._producers is not None, "only a leader that serves takes batches"
        if view.producer_id == NO_PRODUCER_ID:
            return None
        return self._producers.check(view)

    def appended(self, view: BatchView, base_offset: Offset) -> None:
        """Note that a batch that passed the check is in the log."""
        self._applied = base_offset + view.last_offset_delta + 1
        self._bytes_since += len(view.data)
        if view.producer_id >= 0 and self._producers is not None:
            self._producers.apply(view, base_offset, self._clock.now_ms())

    def serving_changed(self) -> None:
        """Start to lead with everything in the log, or stop with nothing uncommitted."""
        self._offered = None
        if not self._replica.is_serving:
            self._producers = self._taken = None
            return
        try:
            while self._catch_up(self._replica.log.end_offset):
                pass  # terminates at the end of the log, which does not move meanwhile
        except LogError as error:
            self._stop(error)

    def _stop(self, error: LogError) -> None:
        """Stop leading, which needs the producers' state; others that can read it may lead."""
        if not isinstance(error, CorruptLog):
            self._replica.stop(error)
            return
        self._replica.damaged(error, self._applied)
        if self._replica.is_alone:
            self._replica.stop(error)

    # ── transactions, while leading ──────────────────────────────────────────────────────────

    @property
    def known(self) -> Producers:
        """The producers; only of a leader that serves, or right after `follow`."""
        assert self._producers is not None, "only a leader that serves is asked"
        return self._producers

    def stable_offset(self) -> Offset:
        """Return the offset before which all transactions are decided for good."""
        return self.known.transactions.stable_offset(self._replica.high_watermark)

    def aborted(self, first: Offset, end: Offset) -> list[Aborted]:
        """Return the aborted transactions that have records in [first, end)."""
        return self.known.transactions.aborted(first, end)

    def follow(self) -> None:
        """Catch up with all that is committed, even if upkeep has not come that far yet.

        Upkeep bounds how far the next snapshot lags, so this is soon done.
        """
        while not self._replica.is_serving and self._follow_on():
            pass  # terminates at the commit, which does not move meanwhile

    # ── for replicas that restart their log (`broker/replication/state_transfer.py`) ─────────────

    @property
    def kind(self) -> SnapshotKind:
        """The kind of snapshot as which a follower stores it, to continue from."""
        return PRODUCERS

    def offer(self) -> tuple[LogStart, StateOffer | None]:
        """Return the start of the log and the producers' state before it.

        It stays the same while the log starts there: later batches would change it, and a follower
        that is fetching it would have to start over.
        """
        start = self._replica.log.start
        if self._offered is None or self._offered[0] != start.offset:
            if self._producers is None:
                self._load()
            assert self._producers is not None
            known = self._producers.before(start.offset)
            self._offered = start.offset, known.state() if len(known) else b""
            self._seen = None
        state = self._offered[1]
        if not state:
            return start, None
        return start, StateOffer(kind=self.kind.suffix, size=len(state), crc=crc32c(state))

    def piece(self, offset: Offset, crc: int, position: int, bytes_max: int) -> Buffer | None:
        """Return some bytes of the last offered state."""
        if self._offered is None or self._offered[0] != offset or crc32c(self._offered[1]) != crc:
            return None
        return memoryview(self._offered[1])[position : position + bytes_max]

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────

    def upkeep(self) -> bool:
        """Do what is due: follow, expire idle producers, write a snapshot.

        Returns whether a snapshot is being written, which keeps the disk busy for a while. Raises
        DiskFull, after which the next upkeep retries, and DiskFailed.
        """
        if self._replica.error is not None:
            return False
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        place = self._place()
        if place == self._seen and self._producers is not None:
            self._expire(self._producers)
            return False  # the usual case with many partitions: `bench/cluster_idle.py`
        has_more = False
        if not self._replica.is_serving:
            has_more = self._follow_on()
            if self._replica.error is not None:
                return False
        self._forget_offer()
        assert self._producers is not None
        self._expire(self._producers)
        transactions = self._producers.transactions
        transactions.trim(self._replica.log.start.first_offset, self._replica.high_watermark)
        if self._taken is None and not self._is_writing and self._is_snapshot_due():
            self._taken = (self._applied, self._producers.state())
            self._bytes_since = 0
        is_begun = self._begin_writing()
        is_done = not (has_more or is_begun) and self._taken is None and self._offered is None
        self._seen = place if is_done else None
        return is_begun

    def _expire(self, producers: Producers) -> None:
        ages = self.ages()
        if ages is not None:
            producers.expire(ages)

    def shrink(self, count: int) -> None:
        """Forget the longest idle, because all partitions together have too many."""
        if self._producers is not None:
            self._producers.shrink(count)

    def stop(self) -> None:
        """Save the state if that spares the next start much reading."""
        if self._replica.error is not None or self._producers is None:
            return
        if self._bytes_since >= self._config.snapshot_at_stop_bytes:
            self._taken = (self._applied, self._producers.state())
        if self._is_taken_committed and not self._is_writing:
            assert self._taken is not None
            segments = self._replica.log.segments
            write_snapshot(segments.disk, segments.folder, *self._taken)
            self._remove_old()

    def _place(self) -> "_Place":
        log = self._replica.log
        return self._replica.raft.commit, log.stable, log.start, log.segments.active_base

    def _forget_offer(self) -> None:
        """Drop the offered state once no follower needs it."""
        leadership = self._replica.raft.leadership
        start = self._replica.log.start.index
        if leadership is None or all(p.next >= start for p in leadership.progress.values()):
            self._offered = None

    def _is_snapshot_due(self) -> bool:
        if self._bytes_since >= self._config.snapshot_bytes:
            return True
        log = self._replica.log
        begun = max(log.segments.active_base, log.start.offset)
        return self.snapshot_offset < begun <= self._applied

    @property
    def _is_taken_committed(self) -> bool:
        return self._taken is not None and self._taken[0] <= self._replica.high_watermark

    def _begin_writing(self) -> bool:
        if self._is_writing or not self._is_taken_committed:
            return False
        assert self._taken is not None
        offset, state = self._taken
        segments = self._replica.log.segments
        begin_snapshot(segments.disk, segments.folder, offset, state, partial(self._wrote, offset))
        self._is_writing = True
        self._taken = None
        return True

    def _wrote(self, offset: Offset, error: OSError | None) -> None:
        """Note that a snapshot is durable, or failed."""
        self._is_writing = False
        if self._replica.log.is_closed:
            return  # perhaps its files are gone, too
        try:
            with disk_errors(self._replica.log.segments.folder):
                if error is not None:
                    raise error
            self.snapshot_offset = max(self.snapshot_offset, offset)
            self._remove_old()
        except LogError as failure:
            self._failure = failure
            self._bytes_since = self._config.snapshot_bytes  # retry soon

    def _remove_old(self) -> None:
        segments = self._replica.log.segments
        for old in snapshot_offsets(segments.disk, segments.folder)[:-SNAPSHOTS_KEPT]:
            remove_snapshot(segments.disk, segments.folder, old)

    # ── reading the log ──────────────────────────────────────────────────────────────────────

    def _settled_offset(self) -> Offset:
        """Return the end of what is committed and final in the segments."""
        log = self._replica.log
        settled = min(self._replica.raft.commit, log.stable)
        return log.offset_at(settled) if settled >= log.start.index else log.start.offset

    def _follow_on(self) -> bool:
        """Apply a slice of what is committed; return whether there is more.

        A replica whose log is damaged waits there until it is mended: it does not lead, but still
        votes.
        """
        is_stuck = self._stuck_at == self._applied and bool(self._replica.damage.found)
        if is_stuck and self._producers is not None:
            return False
        try:
            return self._catch_up(self._settled_offset())
        except CorruptLog as error:
            self._replica.damaged(error, self._applied)
            self._stuck_at = self._applied
            return False
        except LogError as error:
            self._stop(error)
            return False

    def _catch_up(self, end: Offset) -> bool:
        """Apply a slice of the log before `end`; return whether there is more."""
        log = self._replica.log
        if self._producers is None or not log.start.offset <= self._applied <= log.end_offset:
            self._load()
        assert self._producers is not None
        if self._applied >= end:
            return False
        before = self._applied
        try:
            self._apply(end)
        except CorruptLog as error:
            if not self._replica.is_alone:
                raise
            # No other replica has what is lost, and what follows is worth more than its producers.
            self._replica.damaged(error, self._applied)
            self._applied = min(end, log.segments.next_base(self._applied))
        return before < self._applied < end

    def _apply(self, end: Offset) -> None:
        log, now_ms = self._replica.log, self._clock.now_ms()
        assert self._producers is not None
        try:
            read = log.segments.read(self._applied, _READ_BYTES)
            data = cut_at(read, end)
            # Damage may affect a producer's id and sequence: apply nothing before the check.
            damage = first_damage(
                data,
                self._applied,
                lambda at: log.term_at(log.index_at(at)),
                has_holes=self._replica.has_holes,
            )
            sound = data if damage is None else data[: damage[0]]
            for view in split_batches(sound):
                if view.end_offset > end:
                    break
                # The append time is unknown: "now" expires producers late, never early.
                self._producers.apply(view, view.base_offset, now_ms)
                self._applied = view.end_offset
                self._bytes_since += view.size
        except BatchError as error:
            raise CorruptLog(self._replica.group, self._applied, str(error)) from error
        if damage is not None:
            raise CorruptLog(self._replica.group, damage[1], damage[2], offset=damage[1])
        if read and not data and not self._replica.has_holes:
            reason = f"no batch holds offset {self._applied}"
            raise CorruptLog(self._replica.group, self._applied, reason, offset=self._applied)
        if not data:
            self._applied = end  # compaction left a hole behind the last batch

    def _load(self) -> None:
        """Load the newest snapshot, or start empty at the start of the log.

        All snapshots hold committed state only, even those beyond the commit that a replica knows
        right after its start.

        A snapshot from before the start is useless: the records in between are gone, and a producer
        would be refused for a gap that is not its fault.
        """
        self._drop_unusable()
        log = self._replica.log
        now_ms = self._clock.now_ms()
        found = load_snapshot(log.segments.disk, log.segments.folder, log.end_offset)
        self._bytes_since = 0
        if found is not None and found[0] >= log.start.offset:
            self._applied = self.snapshot_offset = found[0]
            self._producers = Producers.from_state(found[1], self._config, now_ms)
        else:
            self._applied = self.snapshot_offset = log.start.offset
            self._producers = Producers(self._config)

    def _drop_unusable(self) -> None:
        log = self._replica.log
        disk, folder = log.segments.disk, log.segments.folder
        beyond = [at for at in snapshot_offsets(disk, folder) if at > log.end_offset]
        for offset in beyond:
            remove_snapshot(disk, folder, offset)
        if beyond:
            with disk_errors(folder):
                disk.sync_now([], [folder])
