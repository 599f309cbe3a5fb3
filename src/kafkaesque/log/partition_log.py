"""One group's log as Raft sees it: batches in segments and marks in the journal, by one index.

Two kinds of files make one log, so the order in which they reach the disk matters. Only this file
enforces these rules; breaking any of them loses data (`tests/mutants` breaks each):

(a) a journal change, a mark or a cut, is durable before a later batch is written;
(b) truncation: segments are cut and synced, then the journal is cut and synced;
(c) trim and install: the state (`broker/replication/state_transfer.py`), the journal's start, then
segments go; (d) an index is stable when segments *and* journal are durable up to it (for segments a
topic
    may accept less: see `configure`);
(e) recovery drops marks beyond the segments' end; terms come from marks, never from batches;
(f) the newest batch is never compacted away, so the segments always show where the log ends;
(g) marks at offset o precede record o;
(h) `boundary` gives the leader the indexes at which it may probe.

Work that must wait for durability is an *operation*: a generator that runs one step, yields to wait
for a round of the flusher, and resumes (`log/operations.py`). Readers see the log as it will be. In
the usual case (batches only) nothing waits: batches are written as they arrive.

On a full disk, unwritten entries stay in memory and are written when there is room.
"""

from collections.abc import Callable, Sequence
from typing import cast

from kafkaesque.callbacks import ignore
from kafkaesque.clock import Clock
from kafkaesque.config import LogConfig
from kafkaesque.entry import Entry, LogStart, TermOpened, Voters
from kafkaesque.errors import DiskFull, LogError
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.flusher import Flusher
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import (
    HolesAllowed,
    LossAllowed,
    MarksCut,
    mark_record,
    start_record,
    synced_record,
)
from kafkaesque.log.open_segments import recover_segments
from kafkaesque.log.operations import Operation, Operations, Wait, one_round
from kafkaesque.log.seals import Seal
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.log.snapshot import drop_beyond
from kafkaesque.log.stability import FLUSH_RECORDS_MAX, Stability
from kafkaesque.log.visible_log import VisibleLog
from kafkaesque.topic_settings import FlushPolicy
from kafkaesque.types import Buffer, GroupId, Index, Offset, Term

_NEVER_STABLE: Index = -1


class PartitionLog:
    """The log of one replica. Changes show at once; `stable` follows when they are durable."""

    def __init__(
        self, group: GroupId, journal: Journal, flusher: Flusher, segments: Segments
    ) -> None:
        marks = journal.groups[group].marks
        self.group = group
        self._visible = VisibleLog(group, marks.trimmed(marks.start), segments)
        self._visible.has_holes = journal.groups[group].has_holes
        self.is_full = False
        """Whether a write is waiting for room on the disk."""
        self.on_stable: Callable[[Index], None] = ignore
        self.on_failed: Callable[[LogError], None] = ignore
        self.on_trimmed: Callable[[], None] = ignore  # when a later start is durable
        self.has_own_start = False  # each replica decides where its log starts, as machines' do
        self._low: Offset = marks.start.first_offset
        self.error: LogError | None = None
        self._journal = journal
        self._flusher = flusher
        self._segments = segments
        self._written: Index = self.end
        self._operations = Operations(
            needs_round=lambda: flusher.request(self),
            needs_room=flusher.wait_for_room,
            failed=self._fail,
        )
        self._stability = Stability(self, flusher, self.end, self._countable)
        self._captured: Index = _NEVER_STABLE
        self._captured_point: SyncedPoint | None = None
        self._is_out = False
        self._may_compact = journal.groups[group].has_holes
        self._wants_holes = self._may_compact
        self._noted_base: Offset = self._synced_base()
        """The base of the segment that holds the journal's durable synced point."""
        self._captured_base: Offset = self._noted_base

    @classmethod
    def create(
        cls,
        group: GroupId,
        start: LogStart,
        *,
        disk: Disk,
        config: LogConfig,
        clock: Clock,
        journal: Journal,
        flusher: Flusher,
    ) -> "PartitionLog":
        """Create an empty log at `start`; it is stable after the next round."""
        assert group not in journal.groups, "the group already has a log here"
        segments = Segments.create(disk, group, config, clock, start.offset)
        journal.add(start_record(group, start, is_reset=False))
        log = cls(group, journal, flusher, segments)
        log._wait_a_round()
        return log

    @classmethod
    def open(
        cls,
        group: GroupId,
        *,
        disk: Disk,
        config: LogConfig,
        clock: Clock,
        journal: Journal,
        flusher: Flusher,
    ) -> "PartitionLog":
        """Recover the log of an earlier run; raises CorruptLog if synced data is damaged."""
        state = journal.groups[group]
        segments = recover_segments(group, state, disk, config, clock)
        is_dirty = state.is_reset or segments.is_dirty
        if state.is_reset:
            journal.add(start_record(group, state.marks.start, is_reset=False))
        beyond = state.marks.first_beyond(segments.end_offset)  # rule (e)
        if beyond is not None:
            journal.add(MarksCut(group=group, index=beyond))
            is_dirty = True
        log = cls(group, journal, flusher, segments)
        if is_dirty:
            log._wait_a_round()
        return log

    @property
    def stable(self) -> Index:
        """Everything before it counts as written: it is durable, unless the topic asks for less."""
        return self._stability.stable

    @property
    def durable(self) -> Index:
        """Everything before it survives a power loss."""
        return self._stability.durable

    # ── reads by Raft ────────────────────────────────────────────────────────────────────────

    @property
    def start(self) -> LogStart:
        """The log's current start."""
        return self._visible.marks.start

    @property
    def low(self) -> Offset:
        """Records before it were deleted, durably; 0 if other replicas need not know."""
        return 0 if self.has_own_start else self._low

    def start_at(self, offset: Offset) -> LogStart:
        """Return the start of a log that starts with the batch at `offset`."""
        return self._visible.marks.start_at(offset, visible_offset=offset)

    @property
    def end(self) -> Index:
        """The first index not in the log."""
        return self._visible.end

    @property
    def end_offset(self) -> Offset:
        """The first offset not in the log."""
        return self._visible.end_offset

    def term_at(self, index: Index) -> Term:
        """Return the term at `index`; also for the index just before the start."""
        return self._visible.marks.term_at(index)

    def term_start(self, index: Index) -> Index:
        """Return where the term at `index` was opened."""
        return self._visible.marks.term_start(index)

    def voters(self) -> list[tuple[Index, Voters]]:
        """Return each set of members with its first index, oldest first; never empty."""
        return self._visible.marks.voters()

    def boundary(self, index: Index) -> Index:
        """Return the first index of the batch that covers `index`; elsewhere `index` itself."""
        return self._visible.boundary(index)

    def entries(self, first: Index, bytes_max: int) -> list[Entry]:
        """Return entries starting at `first`, a boundary; see `VisibleLog.entries`."""
        return self._visible.entries(first, bytes_max)

    # ── reads by clients ─────────────────────────────────────────────────────────────────────

    def offset_at(self, index: Index) -> Offset:
        """Return the number of records before `index`."""
        return self._visible.marks.offset_at(index)

    def index_at(self, offset: Offset) -> Index:
        """Return the index of the record at `offset`."""
        return self._visible.marks.index_at(offset)

    def end_of_term(self, term: Term) -> tuple[Term, Offset] | None:
        """Return the newest term up to `term` and the offset at which it ends."""
        return self._visible.marks.end_of_term(term, self.end_offset)

    @property
    def segments(self) -> Segments:
        """The batches by offset; for reading, and for retention and compaction."""
        return self._segments

    @property
    def has_holes(self) -> bool:
        """Whether offsets may be missing; if not, a missing one is damage."""
        return self._visible.has_holes

    @property
    def compactable_below(self) -> Offset:
        """Segments below this offset may be rewritten: no synced point can refer to them.

        None may until `allow_holes` was called and is durable.
        """
        return self._noted_base if self._may_compact else self.start.offset

    @property
    def mendable_below(self) -> Offset:
        """Segments below this offset may be replaced: no synced point can refer to them."""
        return self._noted_base

    @property
    def has_noted_holes(self) -> bool:
        """Whether the note that this log may have holes is durable."""
        return self._may_compact

    def allow_holes(self) -> None:
        """Note that compaction will leave holes in this log.

        Without that note a hole is damage to a base offset, which the checksum does not cover.
        """
        if not self._wants_holes:
            self._wants_holes = True
            self._operations.begin(self._allow_holes())

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    def configure(
        self,
        config: LogConfig,
        *,
        policy: FlushPolicy,
        flush_ms: int,
        flush_records: int = FLUSH_RECORDS_MAX,
    ) -> None:
        """Apply these settings from the next append; see `log/stability.py` for the policies."""
        self._segments.config = config
        self._stability.policy = policy
        self._stability.flush_ms = flush_ms
        self._stability.flush_records = flush_records
        may_lose = policy is not FlushPolicy.ALWAYS
        if may_lose != self._journal.groups[self.group].may_lose:
            self._operations.begin(self._begin_loss() if may_lose else self._end_loss())
        if self._written > self.durable:
            self._want_stable()

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries at the end; a hole before the first is legal (see rule (f))."""
        old_end = self.end
        is_plain = self._visible.add(entries)
        if is_plain and not self._operations:
            self._write_batches(entries)
            self._want_stable()
        else:
            self._visible.hold(entries, old_end)
            self._operations.begin(self._write(tuple(entries)))

    def truncate(self, index: Index) -> None:
        """Cut everything from `index`, an entry's boundary, onwards."""
        assert self.start.index <= index <= self.end
        offset = self.offset_at(index)
        self._visible.cut(index)
        self._clamp(index)
        self._operations.begin(self._cut(index, offset))

    def trim(self, offset: Offset) -> None:
        """Let the log start at `offset` for clients; whole segments before it are dropped.

        Raft's log starts at the batch that covers `offset`: an entry is never split.
        """
        if offset <= self.start.first_offset:
            return
        assert offset <= self._visible.marks.offset_at(self.stable), (
            "only what is stable is trimmed"
        )
        is_durable = offset <= self._visible.marks.offset_at(self.durable)
        base = min(offset, self._segments.batch_base(offset))
        start = self._visible.marks.start_at(base, visible_offset=offset)
        self._visible.marks = self._visible.marks.trimmed(start)
        self._operations.begin(self._trim(start, is_durable=is_durable))

    def drop_trimmed(self) -> bool:
        """Drop segments before the start that still held a synced point when it moved.

        Returns whether some are left for the next call: the point moves with the next round.
        """
        if self._is_out or self._operations:
            return False
        if self._segments.drop_before(min(self.start.offset, self._noted_base)):
            self._flusher.request(self)
        return self._segments.has_before(self.start.offset) and self.note_point()

    def note_point(self) -> bool:
        """Request a round if the journal's durable synced point lags behind in an older segment.

        Only segments before the durable point may be dropped or compacted. Returns whether it
        requested a round.
        """
        is_behind = not self._is_out and self._synced_base() > self._noted_base
        if is_behind:
            self._flusher.request(self)
        return is_behind

    def roll(self) -> None:
        """Close the active segment, so that it may be dropped or compacted; raises DiskFull."""
        if not self._is_out and not self._operations:
            self._segments.roll()
            self._flusher.request(self)

    def seal(self, seal: Seal) -> None:
        """Keep the seal of a closed segment that had none and was read in full."""
        if not self._is_out:
            self._segments.seals.put(seal)
            self._flusher.request(self)

    def install(self, start: LogStart) -> None:
        """Drop everything and restart at `start`."""
        self._visible.start_over(start)
        self._clamp(_NEVER_STABLE)
        self._operations.begin(self._install(start))

    # ── rounds ───────────────────────────────────────────────────────────────────────────────

    def round_begins(self) -> tuple[list[File], list[str]]:
        """Return the files and folders to sync for this log."""
        if self._is_out:
            return [], []
        self._captured = self._written
        self._captured_point = None if self._stability.clamps else self._segments.point()
        if not self._journal.has_note(self.group):
            self._captured_base = self._synced_base()
        self._operations.round_begins()
        return self._segments.take_dirty()

    def round_postponed(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Handle a round that did not start; it will be retried."""
        self._segments.put_back_dirty(files, folders)

    def round_done(self) -> SyncedPoint | None:
        """Handle the end of a round: earlier writes are durable; resume waiting operations."""
        if self._is_out:
            return None
        self._noted_base = self._captured_base
        try:
            self._segments.synced()
        except LogError as error:
            self._fail(error)
            return None
        self._operations.round_done()
        if self.error is None:
            self._stability.synced(self._captured)
        return None if self._stability.clamps else self._captured_point

    def unsynced(self) -> list[File]:
        """Return the files not known to be durable, whether or not a round is under way."""
        return self._segments.files_from(self._synced_base())

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits: then a sync of the segments makes everything durable."""
        return self.error is None and not self._operations

    @property
    def is_closed(self) -> bool:
        """Whether this log is out of use, after a failure or because its owner closed it."""
        return self._is_out

    def close(self, *, syncs: bool = True) -> None:
        """Close the files; this log ignores rounds under way."""
        self._is_out = True
        self._segments.close(syncs=syncs)

    # ── operations ───────────────────────────────────────────────────────────────────────────

    def _write(self, entries: tuple[Entry, ...]) -> Operation:
        must_wait = False
        for entry in entries:
            if entry.first > self._written and not self._visible.has_holes:
                self._note_holes()
                must_wait = True
            if isinstance(entry.payload, TermOpened | Voters):
                if entry.first > self._written:
                    yield Wait.ROUND
                    self._skip_hole(entry.first)
                self._journal.add(mark_record(self.group, entry.first, entry.term, entry.payload))
                must_wait = True
            else:
                if must_wait:
                    yield Wait.ROUND  # rule (a)
                    must_wait = False
                while not self._try_write((entry,)):
                    yield Wait.ROOM
                self._want_stable()
            self._written = entry.end
            self._visible.written(entry)
        if must_wait:
            yield Wait.ROUND  # rule (a), for later batches

    def _skip_hole(self, index: Index) -> None:
        """Move the segments' end to a mark behind a hole, and note it with the mark.

        Everything before is durable. Without the note, recovery would assume that the batches
        before the mark were lost.
        """
        self._segments.skip_to(index - (self._written - self._segments.end_offset))
        self._journal.add(synced_record(self.group, self._segments.point()))
        self._captured_point = None

    def _note_holes(self) -> None:
        self._journal.add(HolesAllowed(group=self.group))
        self._visible.has_holes = True

    def _begin_loss(self) -> Operation:
        self._journal.add(LossAllowed(group=self.group, is_allowed=True))
        yield Wait.ROUND  # first: a replica that loses unsynced batches must know that it did

    def _end_loss(self) -> Operation:
        yield Wait.ROUND  # everything that counted unsynced is synced now
        if self._stability.policy is FlushPolicy.ALWAYS:
            self._journal.add(LossAllowed(group=self.group, is_allowed=False))

    def _allow_holes(self) -> Operation:
        if not self._visible.has_holes:
            self._note_holes()
        yield Wait.ROUND
        self._may_compact = True

    def _cut(self, index: Index, offset: Offset) -> Operation:
        synced = self._journal.groups[self.group].synced
        if synced is not None and synced.end_offset > offset:
            # Segments shorter than the synced point would look like damage to synced data.
            point = self._segments.point_at(offset, has_holes=self.has_holes)
            self._journal.add(synced_record(self.group, point))
            yield Wait.ROUND
        self._segments.truncate(offset, has_holes=self.has_holes)
        drop_beyond(self._segments.disk, self.group, offset)
        self._captured_point = None
        self._written = index
        yield Wait.ROUND  # rule (b)
        self._journal.add(MarksCut(group=self.group, index=index))
        yield Wait.ROUND  # rule (a)
        self._stability.clamps.popleft()

    def _trim(self, start: LogStart, *, is_durable: bool) -> Operation:
        if not is_durable:
            yield Wait.ROUND  # otherwise a power loss could leave a log that ends before it starts
        self._journal.add(start_record(self.group, start, is_reset=False))
        yield Wait.ROUND  # rule (c)
        self._low = max(self._low, start.first_offset)
        self._segments.drop_before(min(start.offset, self._noted_base))
        self.on_trimmed()

    def _install(self, start: LogStart) -> Operation:
        self._journal.add(start_record(self.group, start, is_reset=True))
        yield Wait.ROUND  # rule (c)
        self._segments.reset(start.offset)
        self._captured_point = None
        # The note went with the old log.
        self._may_compact = self._wants_holes = self._visible.has_holes = False
        self._written = start.index
        yield Wait.ROUND
        self._journal.add(start_record(self.group, start, is_reset=False))
        yield Wait.ROUND  # rule (a): recovery would drop a batch written before this
        self._low = max(self._low, start.first_offset)
        self._stability.clamps.popleft()

    def _wait_a_round(self) -> None:
        """Report nothing as stable until it is durable: one round for all logs opened together."""
        self._stability.lower(_NEVER_STABLE)
        self._operations.begin(one_round())

    def _write_batches(self, entries: Sequence[Entry]) -> None:
        try:
            while entries and (count := self._try_write(entries)):
                self._written = entries[count - 1].end
                entries = entries[count:]
        except LogError as error:
            self._fail(error)
            return
        if entries:
            self._visible.hold(entries, self._written)
            self._operations.begin(self._write(tuple(entries)))

    def _try_write(self, batches: Sequence[Entry]) -> int:
        """Write the first of these batches; return how many, 0 if there is no room now."""
        try:
            count = self._segments.append(*cast(list[Buffer], [one.payload for one in batches]))
        except DiskFull:
            self.is_full = True
            return 0
        self.is_full = False
        return count

    def _want_stable(self) -> None:
        self._stability.want(has_rolled=self._segments.has_rolled)

    def _countable(self) -> Index:
        """Return up to where unsynced batches may count: nowhere while the journal is behind."""
        return _NEVER_STABLE if self._operations or self._is_out else self._written

    def _clamp(self, index: Index) -> None:
        """Report nothing beyond `index` as stable until the pending cut is done."""
        self._stability.clamps.append(index)
        self._stability.lower(index)

    def _fail(self, error: LogError) -> None:
        self.error = error
        self._is_out = True
        self._operations.clear()
        self.on_failed(error)

    def _synced_base(self) -> Offset:
        synced = self._journal.groups[self.group].synced
        return self.start.offset if synced is None else synced.segment_base
