"""A closed segment that is written anew from what a peer holds of the same offsets.

What comes is checked batch by batch and goes to `<base>.log.repair`. Once all of it is durable the
file is called `<base>.log.mended`, and that name is durable; then the damaged file is put aside as
`<base>.log.<number>.damaged` and the mended one takes its name. A crash before the second rename
leaves the old segment. A crash between the renames leaves no segment, and recovery finishes what
was begun: so there is no moment at which both are lost.

A segment whose file is missing is made the same way; nothing is put aside then.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress

from msgspec import Struct

from kafkaesque.errors import CorruptLog, RepairFailed
from kafkaesque.log.damage import ASIDE_MAX, DAMAGED_SUFFIX, next_serial
from kafkaesque.log.disk import File
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.offset_index import RELATIVE_MAX
from kafkaesque.log.segment import LOG_SUFFIX, MENDED_SUFFIX, Segment, stem_of
from kafkaesque.log.segment_index import SegmentIndex
from kafkaesque.log.segments import Segments
from kafkaesque.log.steps import Step, synced, write_index
from kafkaesque.record.view import first_damage, peek_span, split_batches
from kafkaesque.types import Offset, Term

_REPAIR_SUFFIX = ".repair"


class Gap(Struct, frozen=True, kw_only=True):
    """Offsets [first, end) of a log that are to be written anew, as one segment."""

    base: Offset
    """What the segment is called by: at most `first`, where the log begins inside of it."""

    first: Offset
    end: Offset
    segment: Segment | None
    """What is there now; None if the file is missing."""


def find_gap(segments: Segments, offset: Offset, start: Offset) -> Generator[Step, None, Gap]:
    """Return what to write anew because of damage at `offset` of a log that begins at `start`.

    The log has no holes. Usually that is the whole segment that `offset` belongs to. Where that one
    is whole and ends at `offset`, the segment that should follow is missing.
    """
    segment, end = segments.span(offset)
    if segment.base < offset:
        is_missing = yield from _ends_at(segments, segment, offset)
        if is_missing:
            return Gap(base=offset, first=offset, end=end, segment=None)
    return Gap(base=segment.base, first=max(segment.base, start), end=end, segment=segment)


def _ends_at(segments: Segments, segment: Segment, offset: Offset) -> Generator[Step, None, bool]:
    """Tell whether all batches of a segment are good, follow each other, and end there."""
    expected: Offset | None = None
    batches = segment.batches()
    while segments.holds(segment):
        try:
            view = next(batches, None)
        except CorruptLog:
            return False
        if view is None:
            return expected == offset
        if expected is not None and view.base_offset != expected:
            return False
        expected = view.end_offset
        yield Step.WORKED
    return False


class Mending:
    """What is to take the place of a gap; `begin`, `add` until `is_complete`, `finish`, `close`.

    `close` is due in any case. Raises DiskFull and DiskFailed.
    """

    def __init__(self, segments: Segments, gap: Gap, *, has_holes: bool) -> None:
        self.expected = gap.first
        """The first offset that is still to come."""
        self.size = 0
        self.batches = 0
        self._segments = segments
        self._gap = gap
        self._has_holes = has_holes
        stem = stem_of(segments.folder, gap.base)
        self._path = stem + LOG_SUFFIX
        interval = segments.config.index_interval_bytes
        self._index = SegmentIndex(segments.disk, stem, gap.base, interval)
        self._file: File | None = None
        self._is_leftover = False
        """Whether a file of ours is to be removed in the end."""

    def begin(self) -> None:
        """Create the file."""
        with disk_errors(self._path):
            self._remove_leftovers()
            self._is_leftover = True
            self._file = self._segments.disk.create(self._path + _REPAIR_SUFFIX)

    def add(self, data: memoryview, end: Offset, term_at: Callable[[Offset], Term]) -> None:
        """Take the batches that follow, up to `end`; raises RepairFailed if they do not fit.

        Their terms are held against what this log itself knows, for the journal is not damaged.
        """
        assert self._file is not None, "it was begun"
        path = self._path + _REPAIR_SUFFIX
        damage = first_damage(data, self.expected, term_at, has_holes=self._has_holes)
        if damage is not None:
            raise RepairFailed(f"{path} cannot take what a peer sent: {damage[2]}")
        if self.size + len(data) > RELATIVE_MAX:
            raise RepairFailed(f"{path} would be too large for a segment")
        position = self.size
        reached = self.expected
        for view in split_batches(data):
            base, reached, max_timestamp_ms = peek_span(view.data)
            if base < self.expected or reached > self._gap.end:
                reason = f"offsets [{base}, {reached}) belong elsewhere"
                raise RepairFailed(f"{path} cannot take what a peer sent: {reason}")
            self._index.note(base, max_timestamp_ms, position)
            position += view.size
            self.batches += 1
        if not reached <= end <= self._gap.end or (reached < end and not self._has_holes):
            reason = f"it ends at {reached}, not at {end}"
            raise RepairFailed(f"{path} cannot take what a peer sent: {reason}")
        with disk_errors(path):
            self._file.write(self.size, data)
        self.size = position
        self.expected = end

    @property
    def is_complete(self) -> bool:
        """Whether all of it is there."""
        return self.expected == self._gap.end

    def finish(self) -> Iterator[Step]:
        """Let it take its place, durably; raises RepairFailed if the log dropped it."""
        assert self._file is not None and self.is_complete
        segments, segment = self._segments, self._gap.segment
        folder = segments.folder
        yield from synced(segments, [self._file], [])
        self._check_place()
        try:
            if segment is not None:
                segments.hide_index(segment)
            else:
                self._index.remove_files()
            with disk_errors(self._path):
                segments.disk.rename(self._path + _REPAIR_SUFFIX, self._path + MENDED_SUFFIX)
            yield from synced(segments, [], [folder])
            self._check_place()
            placed = self._swap()
            yield from synced(segments, [], [folder])
        finally:
            if segment is not None:
                segment.is_index_hidden = False
        if segments.holds(placed) and placed.size:
            yield from write_index(segments, placed)

    def _swap(self) -> Segment:
        """Put the damaged file aside and the mended one in its place; all else is done."""
        segments, segment = self._segments, self._gap.segment
        mended = self._path + MENDED_SUFFIX
        self._is_leftover = False  # from here on the mended file is the only one
        if segment is None:
            return segments.put_in(self._gap.base, mended, self._index)
        names = segments.disk.list(segments.folder)
        if sum(name.endswith(DAMAGED_SUFFIX) for name in names) < ASIDE_MAX:
            with disk_errors(self._path), suppress(FileNotFoundError):  # it may have been deleted
                aside = f"{self._path}.{next_serial(names)}{DAMAGED_SUFFIX}"
                segments.disk.rename(self._path, aside)
        segments.replace(segment, mended, self._index)
        return segment

    def _check_place(self) -> None:
        """Raise unless the log still has the place that this is for."""
        segments, gap = self._segments, self._gap
        is_there = segments.first_base <= gap.base <= gap.end <= segments.end_offset
        if is_there and gap.segment is not None:
            is_there = segments.holds(gap.segment)
        if not is_there or segments.span(gap.base)[1] != gap.end:
            raise RepairFailed(f"the log has dropped {self._path}, which was to be mended")

    def close(self) -> None:
        """Let go of the file; one that did not take its place is removed."""
        if self._file is not None:
            self._file.close()
        if self._is_leftover:
            self._is_leftover = False
            with disk_errors(self._path):
                self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        for suffix in (_REPAIR_SUFFIX, MENDED_SUFFIX):
            with suppress(FileNotFoundError):
                self._segments.disk.remove(self._path + suffix)
