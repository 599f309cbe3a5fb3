"""The oracle of a log: a plain list of entries, and which of them a crash may take away.

The list changes at once, before the log does. A crash must leave a prefix of what the list was at
some time since the log was last settled, with everything in it that was reported stable and not cut
since. `states` is the history of the list, `floors` that of the stable end, both with the log's
start, because a crash may undo a trim or an install in progress.
"""

from collections.abc import Sequence

from kafkaesque.entry import Entry, LogStart, TermOpened, Voters
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.types import Index, Offset, Term
from tests.log.logs import a_batch
from tests.log.stores import EntryDump, dump, everything


class LogOracle:
    """Applies every change to its log too, and knows what the result must be."""

    def __init__(self, log: PartitionLog) -> None:
        self.start = log.start
        self.entries: list[EntryDump] = []
        self.was_stable = False
        self._take(log)

    def _take(self, log: PartitionLog) -> None:
        self.log = log
        log.on_stable = self._on_stable
        self.begin_history()

    @property
    def end(self) -> Index:
        return self.entries[-1][1] if self.entries else self.start.index

    @property
    def end_offset(self) -> Offset:
        marks = sum(isinstance(entry[3], TermOpened | Voters) for entry in self.entries)
        return self.end - self.start.marks_before - marks

    @property
    def term(self) -> Term:
        opened = [entry[2] for entry in self.entries if isinstance(entry[3], TermOpened)]
        return (opened or [self.start.prev_term])[-1]

    # --- changes -------------------------------------------------------------------------------

    def append(self, *payloads: int | TermOpened | Voters, term: Term = 0, hole: int = 0) -> None:
        """Append marks, and batches given by their count of records; `term` is to be opened."""
        entries: list[Entry] = []
        index, offset, now = self.end + hole, self.end_offset + hole, self.term
        for payload in payloads:
            if isinstance(payload, int):
                data = a_batch(offset, payload, term=now).data
                entries.append(Entry(index, index + payload, now, data))
                index, offset = index + payload, offset + payload
                continue
            now = term if isinstance(payload, TermOpened) else now
            entries.append(Entry(index, index + 1, now, payload))
            index += 1
        self._append(entries)

    def _append(self, entries: Sequence[Entry]) -> None:
        self.entries += dump(entries)
        self._changed()
        self.log.append(entries)

    def truncate(self, back: int) -> None:
        """Cut the last `back` entries."""
        borders = [self.start.index, *(entry[1] for entry in self.entries)]
        cut = borders[max(0, len(borders) - 1 - back)]
        self.entries = [entry for entry in self.entries if entry[0] < cut]
        self._changed()
        self.log.truncate(cut)

    def trim(self, offset: Offset) -> None:
        if offset > self.start.first_offset:
            self.start = self._start_after_trim(offset)
            self.entries = [e for e in self.entries if e[0] >= self.start.index]
            self._changed()
        self.log.trim(offset)

    def _start_after_trim(self, offset: Offset) -> LogStart:
        base, marks = offset, self.start.marks_before
        for first, end, _, payload in self.entries:
            if isinstance(payload, TermOpened | Voters):
                marks += 1
            elif first - marks <= offset < end - marks:
                base = first - marks
        marks, term, who = self.start.marks_before, self.start.prev_term, self.start.voters
        for first, _, its_term, payload in self.entries:
            if isinstance(payload, TermOpened | Voters) and first - marks < base:
                marks += 1
                term = its_term
                who = payload if isinstance(payload, Voters) else who
        return LogStart(
            offset=base, marks_before=marks, prev_term=term, voters=who, visible_offset=offset
        )

    def install(self, start: LogStart) -> None:
        self.start, self.entries = start, []
        self._changed()
        self.log.install(start)

    def _changed(self) -> None:
        self.states.append((self.start, list(self.entries)))
        self.floors[self.start] = self._stable()

    # --- what is durable -----------------------------------------------------------------------

    def _on_stable(self, _: Index) -> None:
        self.was_stable = True
        self.floors[self.start] = self._stable()

    def _stable(self) -> list[EntryDump]:
        return [entry for entry in self.entries if entry[1] <= self.log.stable]

    def begin_history(self) -> None:
        """From here on the disk holds the present state of the log or a later one."""
        self.states = [(self.start, list(self.entries))]
        self.floors = {self.start: self._stable()}

    def note_settled(self) -> None:
        if self.log.is_settled and self.log.stable == self.end:
            self.begin_history()

    # --- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that readers see the list."""
        log = self.log
        assert log.start == self.start
        assert (log.end, log.end_offset) == (self.end, self.end_offset)
        assert everything(log) == self.entries
        assert log.stable <= log.end
        assert log.error is None
        assert log.term_at(log.end) == self.term, "terms come from marks"
        for entry in self.entries[-3:]:
            assert log.boundary(entry[1] - 1) == entry[0]
            assert log.term_at(entry[0]) == entry[2]

    def adopt(self, log: PartitionLog) -> None:
        """Check what a crash left of the log, and continue from there."""
        found, start = everything(log), log.start
        assert start in self.floors, "it starts where it once started"
        floor = self.floors[start]
        assert found[: len(floor)] == floor, "what was stable is there"
        states = [state for then, state in self.states if then == start]
        assert any(state[: len(found)] == found for state in states), "it is a state of its history"
        self.start, self.entries = start, found
        self._take(log)
        self.check()

    def adopt_new(self, log: PartitionLog) -> None:
        """Continue with a new log, because the old one was never reported before the crash."""
        assert not self.was_stable, "a log that was stable once is there"
        self.start, self.entries = log.start, []
        self._take(log)
