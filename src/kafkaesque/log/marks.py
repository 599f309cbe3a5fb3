"""The marks of one log, and the translation between indexes and offsets that they define.

Pure: no disk, no clock. Only `index_at` and `offset_at` convert between the two numberings, in the
whole system. Marks at offset o precede the record at o.
"""

from bisect import bisect_left, bisect_right

from msgspec import Struct

from kafkaesque.entry import LogStart, TermOpened, Voters
from kafkaesque.types import Index, Offset, Term


class Mark(Struct, frozen=True, kw_only=True):
    """A mark with its index and its offset."""

    index: Index
    offset: Offset
    term: Term
    payload: TermOpened | Voters


class Marks:
    """The marks of one log in order, after a start that stands for everything trimmed away."""

    def __init__(self, start: LogStart) -> None:
        self.start = start
        self._marks: list[Mark] = []
        self._indexes: list[Index] = []
        self._offsets: list[Offset] = []
        self._opened_indexes: list[Index] = []
        self._opened_terms: list[Term] = []

    def __len__(self) -> int:
        return len(self._marks)

    def all(self) -> tuple[Mark, ...]:
        """Return every mark, in order."""
        return tuple(self._marks)

    @property
    def total(self) -> int:
        """How many marks the log has ever held before its end, trimmed ones included."""
        return self.start.marks_before + len(self._marks)

    def offset_at(self, index: Index) -> Offset:
        """Return the number of records before `index`: its offset, or that of the mark there."""
        return index - self.start.marks_before - bisect_left(self._indexes, index)

    def index_at(self, offset: Offset) -> Index:
        """Return the index of the record at `offset`, after the marks at that offset."""
        return offset + self.start.marks_before + bisect_right(self._offsets, offset)

    def mark_at(self, index: Index) -> Mark | None:
        """Return the mark that has exactly this index."""
        place = bisect_left(self._indexes, index)
        if place < len(self._marks) and self._indexes[place] == index:
            return self._marks[place]
        return None

    def next_mark(self, index: Index) -> Mark | None:
        """Return the first mark at or after `index`."""
        place = bisect_left(self._indexes, index)
        return self._marks[place] if place < len(self._marks) else None

    def term_at(self, index: Index) -> Term:
        """Return the term at `index`; from marks alone, never from batches."""
        assert index >= self.start.index - 1, "the terms before the log's start are forgotten"
        place = bisect_right(self._opened_indexes, index)
        return self._opened_terms[place - 1] if place else self.start.prev_term

    def term_of_record(self, offset: Offset) -> Term:
        """Return the term in which the record at `offset` was, or would be, written."""
        return self.term_at(self.index_at(offset))

    def term_start(self, index: Index) -> Index:
        """Return where the term at `index` was opened, or the log's start if before it."""
        place = bisect_right(self._opened_indexes, index)
        return self._opened_indexes[place - 1] if place else self.start.index

    def voters(self) -> list[tuple[Index, Voters]]:
        """Return each set of members with its first index, oldest first; never empty."""
        changes = [(m.index, m.payload) for m in self._marks if isinstance(m.payload, Voters)]
        return [(self.start.index, self.start.voters), *changes]

    def end_of_term(self, term: Term, end_offset: Offset) -> tuple[Term, Offset] | None:
        """Return the newest term up to `term` and its end offset, for OffsetForLeaderEpoch.

        None if the log no longer knows any term that old.
        """
        place = bisect_right(self._opened_terms, term)
        if place == 0:
            known = self.start.prev_term and self.start.prev_term <= term
            return (self.start.prev_term, self._opened_offset(0, end_offset)) if known else None
        return self._opened_terms[place - 1], self._opened_offset(place, end_offset)

    def append(self, index: Index, term: Term, payload: TermOpened | Voters) -> Mark:
        """Add a mark at the end of the log, which is `index`."""
        mark = Mark(index=index, offset=index - self.total, term=term, payload=payload)
        assert not self._marks or mark.index > self._marks[-1].index, "marks are in order"
        self._marks.append(mark)
        self._indexes.append(mark.index)
        self._offsets.append(mark.offset)
        if isinstance(payload, TermOpened):
            assert term > (self._opened_terms[-1] if self._opened_terms else self.start.prev_term)
            self._opened_indexes.append(mark.index)
            self._opened_terms.append(term)
        return mark

    def cut(self, index: Index) -> None:
        """Forget the marks at and after `index`."""
        place = bisect_left(self._indexes, index)
        del self._marks[place:], self._indexes[place:], self._offsets[place:]
        opened = bisect_left(self._opened_indexes, index)
        del self._opened_indexes[opened:], self._opened_terms[opened:]

    def first_beyond(self, end_offset: Offset) -> Index | None:
        """Return the index of the first mark beyond the last batch, if there is one."""
        place = bisect_right(self._offsets, end_offset)
        return self._indexes[place] if place < len(self._indexes) else None

    def start_at(self, offset: Offset, visible_offset: Offset) -> LogStart:
        """Return the start of a log trimmed to `offset`; marks at `offset` stay in it."""
        place = bisect_left(self._offsets, offset)
        index = offset + self.start.marks_before + place
        voters = [v for since, v in self.voters() if since < index] or [self.start.voters]
        return LogStart(
            offset=offset,
            marks_before=self.start.marks_before + place,
            prev_term=self.term_at(index - 1) if index else self.start.prev_term,
            voters=voters[-1],
            visible_offset=visible_offset,
        )

    def trimmed(self, start: LogStart) -> "Marks":
        """Return these marks without those before `start`, which came from `start_at`."""
        trimmed = Marks(start)
        for mark in self._marks:
            if mark.index >= start.index:
                trimmed.append(mark.index, mark.term, mark.payload)
        return trimmed

    def _opened_offset(self, place: int, end_offset: Offset) -> Offset:
        if place == len(self._opened_indexes):
            return end_offset
        return self.offset_at(self._opened_indexes[place])
