"""The log that Raft reads, as a plain list: the readable oracle of the one on disk.

It keeps two lists: what a reader sees, and what a power loss would leave. Holes are allowed, as
compaction makes them.
"""

from kafkaesque.entry import Entry, LogStart, TermOpened, Voters
from kafkaesque.types import NO_TERM, Index, Offset, Term

NEVER_STABLE: Index = -1


def log_start(voters: Voters) -> LogStart:
    """The start of a log that has never been trimmed."""
    return LogStart(offset=0, marks_before=0, prev_term=NO_TERM, voters=voters)


class MemoryLog:
    """A `LogView` with the changes that a driver makes to it."""

    def __init__(self, start: LogStart, entries: list[Entry] | None = None) -> None:
        self.start = start
        self.held: list[Entry] = list(entries or [])
        self.stable: Index = self.end
        self.durable_start = start
        self.durable: list[Entry] = list(self.held)

    # ── what Raft reads ──────────────────────────────────────────────────────────────────────

    @property
    def low(self) -> Offset:
        return self.durable_start.first_offset

    @property
    def end(self) -> Index:
        return self.held[-1].end if self.held else self.start.index

    def term_at(self, index: Index) -> Term:
        assert index >= self.start.index - 1, "the terms before the log's start are forgotten"
        return next((e.term for e in reversed(self.held) if e.first <= index), self.start.prev_term)

    def term_start(self, index: Index) -> Index:
        term = self.term_at(index)
        return next((e.first for e in self.held if e.term == term), self.start.index)

    def voters(self) -> list[tuple[Index, Voters]]:
        changes = [(e.first, e.payload) for e in self.held if isinstance(e.payload, Voters)]
        return [(self.start.index, self.start.voters), *changes]

    def boundary(self, index: Index) -> Index:
        return next((e.first for e in self.held if e.first <= index < e.end), index)

    def entries(self, first: Index, bytes_max: int) -> list[Entry]:
        entries: list[Entry] = []
        for entry in self.held:
            if entry.first >= first and (not entries or sum(e.size for e in entries) < bytes_max):
                entries.append(entry)
        return entries

    # ── what the driver does ─────────────────────────────────────────────────────────────────

    def append(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            assert entry.first >= self.end, "an append never overwrites"
            self.held.append(entry)

    def truncate(self, index: Index) -> None:
        assert index in (self.end, self.boundary(index)), "a cut splits no entry"
        self.held = [entry for entry in self.held if entry.end <= index]
        self.stable = min(self.stable, index)

    def install(self, start: LogStart) -> None:
        self.start = start
        self.held = []
        self.stable = NEVER_STABLE

    def trim(self, index: Index) -> None:
        """Start the log at `index`, an entry's boundary."""
        gone = [entry for entry in self.held if entry.first < index]
        marks = sum(1 for e in gone if isinstance(e.payload, TermOpened | Voters))
        self.start = LogStart(
            offset=index - self.start.marks_before - marks,
            marks_before=self.start.marks_before + marks,
            prev_term=self.term_at(index - 1),
            voters=[v for since, v in self.voters() if since < max(index, 1)][-1],
        )
        self.held = [entry for entry in self.held if entry.first >= index]

    def compact(self, first: Index, end: Index) -> None:
        """Remove the batches in [first, end); marks are never compacted away."""
        assert end < self.end, "the newest batch stays"

        def stays(entry: Entry) -> bool:
            is_mark = isinstance(entry.payload, TermOpened | Voters)
            return is_mark or entry.end <= first or entry.first >= end

        self.held = [entry for entry in self.held if stays(entry)]
        self.durable = [entry for entry in self.durable if stays(entry)]

    def sync(self, index: Index) -> bool:
        """Make everything before `index` durable; return whether that changed anything."""
        self.durable_start = self.start
        self.durable = [entry for entry in self.held if entry.end <= index]
        stable = max([self.start.index, *(entry.end for entry in self.durable)])
        is_news = stable > self.stable
        self.stable = max(self.stable, stable)
        return is_news

    def after_power_loss(self, keep: Index = 0) -> "MemoryLog":
        """Return the log after a restart; unsynced entries up to `keep` survived too."""
        kept = [entry for entry in self.held if entry.end <= keep]
        durable = MemoryLog(self.durable_start, self.durable)
        return MemoryLog(self.start, kept) if keep > durable.end else durable
