"""Rewrites a closed segment from a peer's copy of the same offsets.

The data is checked batch by batch and written to `<base>.log.repair`. Once it is durable, the file
is renamed to `<base>.log.mended`, durably; then the damaged file is renamed to
`<base>.log.<number>.damaged` and the mended one takes its name. A crash before the second rename
leaves the old segment. A crash between the renames leaves no segment, and recovery finishes the
swap: so one of the two always survives.

A segment whose file is missing is rebuilt the same way, with no damaged file to set aside.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress

from msgspec import Struct

from kafkaesque.log.damage import ASIDE_MAX, DAMAGED_SUFFIX, next_serial
from kafkaesque.log.disk import File
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog, RepairFailed
from kafkaesque.log.offset_index import RELATIVE_MAX
from kafkaesque.log.segment import LOG_SUFFIX, MENDED_SUFFIX, Segment, stem_of
from kafkaesque.log.segment_index import SegmentIndex
from kafkaesque.log.segments import Segments
from kafkaesque.log.steps import Step, synced, write_index
from kafkaesque.record.view import first_damage, peek_span, split_batches
from kafkaesque.types import Offset, Term

_REPAIR_SUFFIX = ".repair"


class Gap(Struct, frozen=True, kw_only=True):
    """Offsets [first, end) of a log to rewrite, as one segment."""

    base: Offset
    """The base in the segment's name; lower than `first` if the log starts inside the segment."""

    first: Offset
    end: Offset
    segment: Segment | None
    """The existing segment; None if the file is missing."""


def find_gap(segments: Segments, offset: Offset, start: Offset) -> Generator[Step, None, Gap]:
    """Return what to rewrite because of damage at `offset` of a log that starts at `start`.

    The log has no holes. Usually that is the whole segment of `offset`. If that segment is good and
    ends at `offset`, the one that should follow is missing.
    """
    segment, end = segments.span(offset)
    if segment.base < offset:
        is_missing = yield from _ends_at(segments, segment, offset)
        if is_missing:
            return Gap(base=offset, first=offset, end=end, segment=None)
    return Gap(base=segment.base, first=max(segment.base, start), end=end, segment=segment)


def _ends_at(segments: Segments, segment: Segment, offset: Offset) -> Generator[Step, None, bool]:
    """Return whether all batches of a segment are good and contiguous, and end there."""
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
    """The replacement for a gap; `begin`, `add` until `is_complete`, `finish`, `close`.

    Always call `close`. Raises DiskFull and DiskFailed.
    """

    def __init__(self, segments: Segments, gap: Gap, *, has_holes: bool) -> None:
        self.expected = gap.first
        """The next offset to add."""
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
        """Whether a file of ours must be removed at the end."""

    def begin(self) -> None:
        """Create the file."""
        with disk_errors(self._path):
            self._remove_leftovers()
            self._is_leftover = True
            self._file = self._segments.disk.create(self._path + _REPAIR_SUFFIX)

    def add(self, data: memoryview, end: Offset, term_at: Callable[[Offset], Term]) -> None:
        """Add the next batches, up to `end`; raises RepairFailed if they do not fit.

        Their terms are checked against this log's own, because the journal is not damaged.
        """
        assert self._file is not None, "it was begun"
        path = self._path + _REPAIR_SUFFIX
        damage = first_damage(data, self.expected, term_at, has_holes=self._has_holes)
        if damage is not None:
            raise RepairFailed(f"{path} does not accept the data from the peer: {damage[2]}")
        if self.size + len(data) > RELATIVE_MAX:
            raise RepairFailed(f"{path} would be too large for a segment")
        position = self.size
        reached = self.expected
        for view in split_batches(data):
            base, reached, max_timestamp_ms = peek_span(view.data)
            if base < self.expected or reached > self._gap.end:
                reason = f"offsets [{base}, {reached}) belong elsewhere"
                raise RepairFailed(f"{path} does not accept the data from the peer: {reason}")
            self._index.note(base, max_timestamp_ms, position)
            position += view.size
            self.batches += 1
        if not reached <= end <= self._gap.end or (reached < end and not self._has_holes):
            reason = f"it ends at {reached}, not at {end}"
            raise RepairFailed(f"{path} does not accept the data from the peer: {reason}")
        with disk_errors(path):
            self._file.write(self.size, data)
        self.size = position
        self.expected = end

    @property
    def is_complete(self) -> bool:
        """Whether all offsets have been added."""
        return self.expected == self._gap.end

    def finish(self) -> Iterator[Step]:
        """Replace the old segment, durably; raises RepairFailed if the log dropped it."""
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
        """Set the damaged file aside and put the mended one in its place, as the last step."""
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
        """Raise if the log has dropped the segment's place."""
        segments, gap = self._segments, self._gap
        is_there = segments.first_base <= gap.base <= gap.end <= segments.end_offset
        if is_there and gap.segment is not None:
            is_there = segments.holds(gap.segment)
        if not is_there or segments.span(gap.base)[1] != gap.end:
            raise RepairFailed(f"the log dropped {self._path} while it was being mended")

    def close(self) -> None:
        """Close the file; remove it unless it has replaced the segment."""
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
