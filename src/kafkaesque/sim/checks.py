"""Invariants checked after every step of a simulated cluster.

The five properties of Raft (figure 3 of the paper), and the promises to clients on top:

- election safety: one leader per term;
- leader append-only: a leader never cuts its own log;
- log matching: entries with the same index and term are equal, and so are their predecessors;
- leader completeness: a new leader holds everything that was committed in earlier terms;
- state machine safety: one value per index, whichever replica commits it;
- nothing is cut below a replica's commit, the commit never goes back, no log starts beyond it, and
  the high watermark matches it;
- no record is deleted by age that is younger, by the true time, than its topic's retention;
- offsets are dense; acknowledged records are committed, and found again at the end. Under a flush
  policy that allows it, a power loss may take unsynced records, and nothing else may.

Each check covers only the latest changes, so all of them together are cheap.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.log.errors import CorruptLog
from kafkaesque.raft.leadership import Leadership
from kafkaesque.raft.raft import Role
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView, split_batches
from kafkaesque.sim.broker_settings import CLOCK_APART_MS_MAX
from kafkaesque.types import GroupId, Index, NodeId, Offset, Term

_READ_BYTES = 1 << 16


class Violation(AssertionError):
    """A broken invariant; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An entry as it was first written, and the term before it."""

    end: Index
    digest: object
    prev_term: Term


class GroupChecks:
    """The history of one group, over the runs of all its replicas."""

    def __init__(self, group: GroupId, damaged: Set[NodeId]) -> None:
        self.group = group
        self.leaders: dict[Term, NodeId] = {}
        self.committed: dict[Index, Entry] = {}
        self.committed_end: Index = 0
        self.acknowledged = 0
        self.promised: list[tuple[Offset, list[bytes | None]]] = []
        """Every acknowledged batch: its first offset and its values."""
        self.is_compacted = False
        """Once true, batches may have lost superseded records, or be gone."""
        self.may_forget = False
        """Once true, its only replica may have lost its end whenever it is opened."""
        self.retention_ms: int | None = None
        """How long records are kept, if known."""
        self._unwanted_below: Offset = 0
        self._damaged = damaged
        self._written: dict[tuple[Index, Term], Seen] = {}
        self._index_at: dict[Offset, Index] = {}
        self._committed_in: dict[Index, Term] = {}
        """The term of the leader that committed the entry starting here."""
        self._unproven: list[tuple[Offset, list[bytes | None]]] = []

    def appended(self, replica: Replica, entries: Sequence[Entry]) -> None:
        """Log matching, by induction: same place and term, so same entry and same predecessor."""
        for entry in entries:
            prev_term = replica.log.term_at(entry.first - 1)
            seen = Seen(end=entry.end, digest=digest(entry), prev_term=prev_term)
            known = self._written.setdefault((entry.first, entry.term), seen)
            if known.end != seen.end or known.prev_term != seen.prev_term:
                raise Violation(f"log matching: two entries at {entry.first} of term {entry.term}")
            if known.digest != seen.digest and not self.is_compacted:
                raise Violation(f"log matching: two values at {entry.first} of term {entry.term}")

    def truncated(self, replica: Replica, index: Index, commit: Index) -> None:
        """Leader append-only, and no cut below what the replica considered committed."""
        if replica.raft.role is Role.LEADER:
            raise Violation("leader append-only: a leader cut its own log")
        if index < commit:
            raise Violation(f"a cut at {index} is below the commit {commit}")

    def committed_to(self, replica: Replica, old: Index, new: Index) -> None:
        """State machine safety, and density when an entry is committed for the first time."""
        if new < old:
            raise Violation(f"the commit went back from {old} to {new}")
        first = max(old, replica.log.start.index)
        for entry in self._read(replica, first, new):
            self._committed_one(replica, entry)
        self.prove_acknowledged()

    def led(self, replica: Replica, leadership: Leadership) -> None:
        """Election safety and leader completeness, when a replica becomes leader."""
        raft = replica.raft
        other = self.leaders.setdefault(raft.term, raft.node)
        if other != raft.node:
            raise Violation(f"election safety: nodes {other} and {raft.node} lead term {raft.term}")
        # The property covers entries committed in terms up to this one. A replica that hears of its
        # election late, because its process was paused, leads a term that is over, and can commit
        # nothing in it.
        before = [e for at, e in self.committed.items() if self._committed_in[at] <= raft.term]
        committed_end = max((entry.end for entry in before), default=0)
        if leadership.opened_at < committed_end:
            raise Violation(
                f"leader completeness: node {raft.node} leads term {raft.term} with a log that ends"
                f" at {leadership.opened_at}, committed is {committed_end}"
            )
        if committed_end == self.committed_end:
            self.holds_everything(replica)

    def holds_everything(self, replica: Replica) -> None:
        """Every committed entry that was not trimmed is in this log, with the same value."""
        start = replica.log.start.index
        for first, entry in self.committed.items():
            if first < start:
                continue
            if replica.log.term_at(first) != entry.term:
                raise Violation(f"committed entry {first} of term {entry.term} is not in the log")
        try:
            self._compare_values(replica, start)
        except CorruptLog as error:
            raise Violation(f"committed entries cannot be read: {error}") from error

    def last_committed(self) -> tuple[Index, Term]:
        """Return the end of the committed entries, and the term of the last one."""
        newest = max(self.committed, default=None)
        return self.committed_end, 0 if newest is None else self.committed[newest].term

    def acknowledge(self, offset: Offset, sent: list[bytes | None]) -> None:
        """Record an acknowledgement of a batch at this offset; proven after the step."""
        self.acknowledged += 1
        self.promised.append((offset, sent))
        self._unproven.append((offset, sent))

    def was_read(self, data: memoryview) -> None:
        """Check batches that a consumer got: each must be committed, with equal values."""
        for view in split_batches(data):
            index = self._index_at.get(view.base_offset)
            if index is None:
                raise Violation(f"offset {view.base_offset} was read but is not committed")
            if values(self.committed[index]) != values_of(view):
                raise Violation(f"offset {view.base_offset} was read with another value")

    @property
    def committed_end_offset(self) -> Offset:
        """Up to here a consumer may have read, at some replica."""
        if not self._index_at:
            return 0
        newest = max(self._index_at)
        entry = self.committed[self._index_at[newest]]
        return newest + entry.end - entry.first

    def was_refused(self, offset: Offset, first_offset: Offset) -> None:
        """Check a leader's answer, with this log start, that an offset does not exist."""
        if first_offset <= offset <= self.committed_end_offset:
            raise Violation(f"offset {offset} was called out of range, and is committed")

    def delete_below(self, offset: Offset) -> None:
        """Record a client's request to delete all records before this."""
        self._unwanted_below = max(self._unwanted_below, offset)

    def trimmed(
        self, old: Offset, new: Offset, now_ms: int, appended: Mapping[Offset, int]
    ) -> None:
        """Check a later log start: the dropped records must be old enough, or deleted by a client.

        Timestamps from producers are right. Timestamps from brokers may be wrong: such records
        count from when they were `appended`, if the deleting replica was present then.
        """
        if self.retention_ms is None:
            return
        newest_ms = now_ms - self.retention_ms + 2 * CLOCK_APART_MS_MAX
        for offset in range(max(old, self._unwanted_below), new):
            index = self._index_at.get(offset)
            payload = b"" if index is None else self.committed[index].payload
            if isinstance(payload, bytes) and payload:
                view = BatchView(payload)
                time_ms = view.max_timestamp_ms
                if view.is_log_append_time:
                    time_ms = appended.get(offset, 0)
                if time_ms > newest_ms:
                    age_ms = now_ms - time_ms
                    raise Violation(f"offset {offset} was deleted {age_ms} ms after it was written")

    def forgot(self, replica: Replica, durable: Index) -> None:
        """The only voter lost power under a policy that may lose unsynced records."""
        end, end_offset = replica.log.end, replica.log.end_offset
        if end < durable:
            raise Violation(f"a power loss took synced records: {durable} is cut to {end}")
        self.committed = {at: entry for at, entry in self.committed.items() if entry.end <= end}
        self.committed_end = min(self.committed_end, end)
        self._index_at = {at: index for at, index in self._index_at.items() if index < end}
        self.promised = [promise for promise in self.promised if promise[0] < end_offset]
        self._unproven = [promise for promise in self._unproven if promise[0] < end_offset]

    def prove_acknowledged(self) -> None:
        """Raise if acknowledged records are not committed, or committed with other values."""
        unproven: list[tuple[Offset, list[bytes | None]]] = []
        for offset, sent in self._unproven:
            index = self._index_at.get(offset)
            if index is None:
                unproven.append((offset, sent))
                continue
            if [value for _, value in values(self.committed[index]).values()] != sent:
                raise Violation(f"offset {offset} was acknowledged with another value")
        self._unproven = unproven
        if unproven and not self._damaged:
            raise Violation(f"offset {unproven[0][0]} was acknowledged but is not committed")

    def all_proven(self) -> None:
        """Raise if any acknowledged record was never seen committed."""
        self.prove_acknowledged()
        if self._unproven:
            raise Violation(f"offset {self._unproven[0][0]} was acknowledged and is lost")

    def _committed_one(self, replica: Replica, entry: Entry) -> None:
        known = self.committed.get(entry.first)
        if known is not None:
            if known.term != entry.term or known.end != entry.end:
                raise Violation(f"state machine safety: two entries committed at {entry.first}")
            self._compare(known, entry)
            return
        if entry.first < self.committed_end:
            raise Violation(f"entry {entry.first} starts inside another committed one")
        if entry.first > self.committed_end:
            raise Violation(
                f"offsets have a gap: committed up to {self.committed_end}, then {entry.first}"
            )
        if isinstance(entry.payload, bytes | bytearray | memoryview):
            base = BatchView(entry.payload).base_offset
            if base != replica.log.offset_at(entry.first):
                raise Violation(f"the batch at index {entry.first} says offset {base}")
            entry = entry._replace(payload=bytes(entry.payload))
            self._index_at[base] = entry.first
        self.committed[entry.first] = entry
        self._committed_in[entry.first] = replica.raft.term
        self.committed_end = entry.end

    def _compare_values(self, replica: Replica, start: Index) -> None:
        """Read the log from disk as a follower would get it; missing entries must be holes."""
        found: set[Index] = set()
        for entry in self._read(replica, start, self.committed_end):
            known = self.committed.get(entry.first)
            if known is not None:
                self._compare(known, entry)
                found.add(entry.first)
        missing = [at for at in self.committed if at >= start and at not in found]
        if missing and not self.is_compacted and replica.raft.node not in self._damaged:
            raise Violation(f"committed entry {missing[0]} is missing from the log")

    def _read(self, replica: Replica, first: Index, stop: Index) -> Iterator[Entry]:
        """Yield the log's entries; damage that it detects on a damaged disk is expected."""
        try:
            while first < stop:
                entries = replica.log.entries(first, _READ_BYTES)
                if not entries:
                    raise Violation(f"the log ends at {first}, before its own commit {stop}")
                yield from (entry for entry in entries if entry.first < stop)
                first = entries[-1].end
        except CorruptLog:
            if replica.raft.node not in self._damaged:
                raise

    def _compare(self, known: Entry, entry: Entry) -> None:
        if digest(known) == digest(entry):
            return
        if not self.is_compacted or isinstance(entry.payload, TermOpened | Voters):
            raise Violation(f"two values at index {entry.first}")
        kept = values(entry)
        originals = values(known)
        if any(originals.get(offset) != value for offset, value in kept.items()):
            raise Violation(f"compaction changed a record at index {entry.first}")


class Watch:
    """One replica under observation, from the moment it was opened."""

    def __init__(
        self, replica: Replica, checks: GroupChecks, now_ms: Callable[[], int] = lambda: 0
    ) -> None:
        self.replica = replica
        self._start = replica.log.start.first_offset
        self._now_ms = now_ms
        self._appended_ms: dict[Offset, int] = {}
        """When this replica appended each batch, if retention is limited."""
        self._checks = checks
        self._commit = replica.raft.commit
        self._leadership: Leadership | None = None
        log = replica.log
        append, truncate = log.append, log.truncate

        def watched_append(entries: Sequence[Entry]) -> None:
            append(entries)
            if replica.error is None:
                checks.appended(replica, entries)
                if checks.retention_ms is not None:
                    at = {log.offset_at(entry.first): now_ms() for entry in entries}
                    self._appended_ms.update(at)

        def watched_truncate(index: Index) -> None:
            checks.truncated(replica, index, self._commit)
            truncate(index)

        log.append = watched_append  # type: ignore[method-assign]
        log.truncate = watched_truncate  # type: ignore[method-assign]

    def after_step(self) -> None:
        """Check the changes of the last step."""
        raft = self.replica.raft
        if self.replica.error is not None:
            return
        if self.replica.log.start.index > raft.commit:
            raise Violation(f"a log starts beyond its own commit, at {raft.commit}")
        if self.replica.log.start.first_offset > self._start:
            before, self._start = self._start, self.replica.log.start.first_offset
            appended = self._appended_ms if self.replica.is_serving else {}
            self._checks.trimmed(before, self._start, self._now_ms(), appended)
        if raft.commit != self._commit:
            old, self._commit = self._commit, raft.commit
            self._checks.committed_to(self.replica, old, raft.commit)
        shown, offset = self.replica.high_watermark, self.replica.log.offset_at(raft.commit)
        if shown != offset:
            raise Violation(f"the high watermark is shown at {shown}, the commit is at {offset}")
        if raft.leadership is not self._leadership:
            self._leadership = raft.leadership
            if raft.leadership is not None:
                self._checks.led(self.replica, raft.leadership)


def digest(entry: Entry) -> object:
    """Return a value that is equal exactly for equal entries."""
    if isinstance(entry.payload, TermOpened | Voters):
        return entry.payload
    return bytes(entry.payload)


def values(entry: Entry) -> dict[Offset, tuple[bytes | None, bytes | None]]:
    """Return key and value by offset."""
    assert isinstance(entry.payload, bytes | bytearray | memoryview)
    return values_of(BatchView(entry.payload))


def values_of(view: BatchView) -> dict[Offset, tuple[bytes | None, bytes | None]]:
    """Return key and value of a batch by offset."""
    return {r.offset: (r.key, r.value) for r in read_records(view)}
