"""One log as its readers see it: batches in segments, marks, and entries not yet written.

Changes show here at once, whether or not they have reached the files. Entries that wait for a round
are in `unwritten`; from `unwritten_from` onwards the segments may still hold data about to be cut.
"""

from collections.abc import Iterator, Sequence

from kafkaesque.entry import MARKS, Entry, LogStart
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.marks import Marks
from kafkaesque.log.segments import Segments
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import BatchView, split_batches
from kafkaesque.types import GroupId, Index, Offset, Term


class VisibleLog:
    """The current log of `group`; its owner keeps it up to date."""

    def __init__(self, group: GroupId, marks: Marks, segments: Segments) -> None:
        self.marks = marks
        self.end: Index = segments.end_offset + marks.total
        self.unwritten: list[Entry] = []
        self.unwritten_from: Index = self.end
        self.has_holes = False
        """Whether offsets may be missing; if not, a missing one is damage."""
        self._group = group
        self._segments = segments

    @property
    def end_offset(self) -> Offset:
        """The first offset not in the log."""
        return self.end - self.marks.total

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    def add(self, entries: Sequence[Entry]) -> bool:
        """Show entries at the end; return whether they are batches without a hole."""
        is_plain = True
        for entry in entries:
            assert entry.first >= self.end, "an append never overwrites"
            is_plain = is_plain and entry.first == self.end
            if isinstance(entry.payload, MARKS):
                self.marks.append(entry.first, entry.term, entry.payload)
                is_plain = False
            self.end = entry.end
        return is_plain

    def hold(self, entries: Sequence[Entry], old_end: Index) -> None:
        """Keep entries in memory that cannot be written yet."""
        if not self.unwritten:
            self.unwritten_from = old_end
        self.unwritten += entries

    def written(self, entry: Entry) -> None:
        """Release an entry that has been written to its file."""
        if self.unwritten and self.unwritten[0] is entry:
            del self.unwritten[0]
            self.unwritten_from = entry.end

    def cut(self, index: Index) -> None:
        """Show nothing from `index` onwards."""
        self.marks.cut(index)
        self.unwritten = [entry for entry in self.unwritten if entry.first < index]
        self.unwritten_from = min(self.unwritten_from, index)
        self.end = index

    def start_over(self, start: LogStart) -> None:
        """Show an empty log."""
        self.marks = Marks(start)
        self.unwritten = []
        self.end = start.index

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def boundary(self, index: Index) -> Index:
        """Return the first index of the batch that covers `index`; elsewhere `index` itself."""
        if self._is_unwritten(index):
            return next((e.first for e in self.unwritten if e.first <= index < e.end), index)
        if index >= self.end or self.marks.mark_at(index) is not None:
            return index
        offset = self.marks.offset_at(index)
        return index - max(0, offset - self._segments.batch_base(offset))

    def entries(self, first: Index, bytes_max: int) -> list[Entry]:
        """Return entries starting at `first`, a boundary: at least one if there is one.

        Where compaction left a hole the first entry starts after `first`. Raises CorruptLog.
        """
        entries: list[Entry] = []
        size = 0
        while first < self.end and size < bytes_max:
            some = self._entries_at(first, bytes_max - size)
            if some:
                entries += some
                size += sum(entry.size for entry in some)
                first = some[-1].end
                continue
            beyond = self._beyond_hole(first)
            if beyond is None:
                break
            first = beyond
        return entries

    def _entries_at(self, first: Index, bytes_max: int) -> list[Entry]:
        mark = self.marks.mark_at(first)
        if mark is not None:
            return [Entry(first, first + 1, mark.term, mark.payload)]
        if self._is_unwritten(first):
            return [entry for entry in self.unwritten if entry.first >= first][:1]
        marks_before = first - self.marks.offset_at(first)
        next_mark = self.marks.next_mark(first)
        stop = next_mark.offset if next_mark is not None else self.end_offset
        if self.unwritten:  # the segments' data from there on is yet to be cut
            stop = min(stop, self.marks.offset_at(self.unwritten_from))
        term = self.marks.term_at(first)
        return [
            Entry(view.base_offset + marks_before, view.end_offset + marks_before, term, view.data)
            for view in self._checked_batches(first - marks_before, bytes_max, stop, term)
        ]

    def _beyond_hole(self, index: Index) -> Index | None:
        """Return where the log may continue after a hole at `index`."""
        mark = self.marks.next_mark(index)
        places = [] if mark is None else [mark.index]
        if self.unwritten and self.unwritten_from > index:
            places.append(self.unwritten_from)
        return min(places, default=None)

    def _is_unwritten(self, index: Index) -> bool:
        return bool(self.unwritten) and index >= self.unwritten_from

    def _checked_batches(
        self, offset: Offset, bytes_max: int, stop: Offset, term: Term
    ) -> Iterator[BatchView]:
        """Yield batches from disk up to `stop`, never a damaged one: a peer would copy it.

        The checksum does not cover base offset and term, so they are checked against known values.
        """
        try:
            data = self._segments.read(offset, bytes_max)
            if not data and not self.has_holes:
                raise CorruptLog(self._group, offset, "there is no batch here", offset=offset)
            for view in split_batches(data):
                base = view.base_offset
                if base >= stop and (self.has_holes or offset == stop):
                    return
                is_next = base == offset or (self.has_holes and base > offset)
                if not is_next or view.end_offset > stop or view.term != term:
                    found = f"offsets [{base}, {view.end_offset}) of term {view.term}"
                    reason = f"found a batch with {found}"
                    raise CorruptLog(self._group, offset, reason, offset=offset)
                view.check_crc()
                yield view
                offset = view.end_offset
        except BatchError as error:
            raise CorruptLog(self._group, offset, str(error), offset=offset) from error
