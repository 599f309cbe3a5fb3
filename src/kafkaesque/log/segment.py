"""One segment of a partition's log: a file of contiguous batches, named after its first offset.

A segment does not know its neighbours, syncing or rolling: `log/segments.py` does.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from kafkaesque.config import LogConfig
from kafkaesque.errors import DiskFull
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors, translate
from kafkaesque.log.errors import CorruptLog, DiskFailed
from kafkaesque.log.seals import STAMP_BYTES, Seal
from kafkaesque.log.segment_index import SegmentIndex, peek_newest
from kafkaesque.log.time_index import NO_TIMESTAMP
from kafkaesque.log.window import SCAN_BYTES, BadBatch, Window
from kafkaesque.record.crc import crc32c
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import HEADER_BYTES, BatchView, peek_span
from kafkaesque.types import Buffer, Offset

LOG_SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex")

MENDED_SUFFIX = ".mended"
"""Suffix of a good file that is about to replace a damaged one."""

SEGMENT_NAME = re.compile(r"(\d{20})(\.log|\.index|\.timeindex)(\.cleaned|\.repair|\.mended)?")
"""A segment's file name: base, suffix, and the suffix of a file not yet in place."""

EMPTY = memoryview(b"")

OFFSET_MAX: Offset = (1 << 63) - 1
NEXT_READS_MAX = 16
"""Positions remembered because a read ended there: its reader will continue there."""

TAIL_BYTES_MAX = 4 << 10
"""A last batch up to this size is kept in memory, for consumers waiting at the end of the log."""

RUN_BYTES_MAX = 64 << 10
"""Batches are written together up to this size: more would cost a copy and save nothing."""

_Found = TypeVar("_Found")


def stem_of(folder: str, base: Offset) -> str:
    """Return the path shared by a segment's files, without their suffix."""
    return f"{folder}/{base:020d}"


def first_run(batches: tuple[Buffer, ...], bytes_max: int) -> tuple[Buffer, ...]:
    """Return the first of these batches, and those after it that may be written with it."""
    left = min(bytes_max, RUN_BYTES_MAX)
    for place, batch in enumerate(batches):
        left -= len(batch)
        if left < 0:
            return batches[: max(place, 1)]
    return batches


class SyncedPoint(Struct, frozen=True, kw_only=True):
    """Everything before this point was durable at some time."""

    segment_base: Offset
    position: int
    end_offset: Offset
    checksum: int | None = None
    """The checksum of the segment up to here, see `Segment.checksum`."""


class SegmentInfo(Struct, frozen=True, kw_only=True):
    """A segment's facts for retention and operators; it covers the offsets [base, end)."""

    base: Offset
    end: Offset
    bytes: int
    max_timestamp_ms: int
    modified_ms: int
    is_active: bool


class Segment:
    """A file of batches with its indexes, which are loaded on first use.

    `size` is the valid part of the file: a failed append may leave bytes after it. `end` is the end
    offset of the last batch; only the active segment knows it. `checksum` is over the stamps of all
    batches (`log/seals.py`), None if unknown without reading them. `damage` is the reason why only
    the first `size` bytes of a damaged segment are good.
    """

    __slots__ = (
        "_config",
        "_disk",
        "_index",
        "_newest",
        "_next_reads",
        "_tail",
        "_tail_base",
        "base",
        "checksum",
        "damage",
        "end",
        "file",
        "first_append_ms",
        "is_closed",
        "is_index_hidden",
        "modified_ms",
        "path",
        "size",
        "stem",
    )

    def __init__(
        self, disk: Disk, folder: str, config: LogConfig, base: Offset, file: File
    ) -> None:
        self._disk = disk
        self._config = config
        self._index: SegmentIndex | None = None
        self._newest: tuple[int, Offset] | None = None
        self._next_reads: dict[Offset, int] = {}
        self._tail = EMPTY
        self._tail_base = base
        self.stem = stem_of(folder, base)
        self.path = self.stem + LOG_SUFFIX
        self.base = base
        self.end = base
        self.file = file
        self.size = 0
        self.checksum: int | None = 0
        self.damage: str | None = None
        self.first_append_ms = 0
        self.modified_ms = 0
        self.is_closed = False
        self.is_index_hidden = False

    @classmethod
    def create(cls, disk: Disk, folder: str, config: LogConfig, base: Offset) -> "Segment":
        """Create an empty segment; the caller syncs the folder."""
        path = stem_of(folder, base) + LOG_SUFFIX
        with disk_errors(path):
            segment = cls(disk, folder, config, base, disk.create(path))
        segment.start_index()
        return segment

    @classmethod
    def open(cls, disk: Disk, folder: str, config: LogConfig, base: Offset) -> "Segment":
        """Open an existing segment with all of its bytes, without reading any."""
        path = stem_of(folder, base) + LOG_SUFFIX
        with disk_errors(path):
            segment = cls(disk, folder, config, base, disk.open(path))
            segment.size = segment.file.size()
            segment.checksum = None
            segment.modified_ms = segment.file.modified_ms()
        return segment

    # --- appending -------------------------------------------------------------------------------

    def append(
        self, batches: Sequence[Buffer], now_ms: int, span: tuple[Offset, Offset, int]
    ) -> None:
        """Write stamped batches at the end, at once; an error leaves the segment unchanged.

        `span` is the result of `peek_span` for the first one.
        """
        position = self.size
        try:
            self.file.write(position, batches[0] if len(batches) == 1 else b"".join(batches))
        except OSError as error:
            # A partly written batch must not be taken for a batch later.
            with suppress(OSError):
                self.file.truncate(position)
            raise translate(error, self.path) from error
        index = self._index
        assert index is not None, "the active segment has its index"
        if position == 0:
            self.first_append_ms = now_ms
        checksum = self.checksum
        first = batches[0]
        for batch in batches:
            base, end, max_timestamp_ms = span if batch is first else peek_span(batch)
            index.note(base, max_timestamp_ms, position)
            if checksum is not None:
                checksum = crc32c(batch[:STAMP_BYTES], checksum)
            position += len(batch)
        self.checksum = checksum
        self.modified_ms = now_ms
        self.size = position
        self.end = end
        # A copy, because the batch may be a small part of a large request.
        self._tail = memoryview(bytes(batch)) if len(batch) <= TAIL_BYTES_MAX else EMPTY
        self._tail_base = base

    def tail(self, offset: Offset) -> memoryview:
        """Return the last batch if it starts at `offset` and is kept in memory; else nothing."""
        return self._tail if offset == self._tail_base else EMPTY

    def forget_tail(self) -> None:
        """Keep no batch in memory; for a segment that is no longer the last."""
        self._tail = EMPTY

    def cut(self, offset: Offset) -> list[File]:
        """Remove the batches from `offset` onwards; returns the files to sync."""
        position, end = self._guarded(lambda: self._boundary(offset))
        with disk_errors(self.path):
            self.file.truncate(position)
        self.size = position
        self.end = end
        self.checksum = None if position else 0
        self._tail = EMPTY
        self._newest = None
        self._next_reads.clear()
        index = self.index
        self._guarded(lambda: index.cut(Window(self.file, position), position, offset))
        return [self.file, *index.trim_files()]

    def boundary(self, offset: Offset, *, has_holes: bool = True) -> int:
        """Return the position of the first batch at or after `offset`.

        That must be between batches, and without `has_holes` the one before must end there;
        otherwise the data is not what was written. Raises CorruptLog.
        """
        return self._guarded(lambda: self._boundary(offset, has_holes=has_holes))[0]

    def _boundary(self, offset: Offset, *, has_holes: bool = True) -> tuple[int, Offset]:
        """Return where the first batch at or after `offset` starts and the one before it ends."""
        if offset <= self.base:
            return 0, self.base
        window = Window(self.file, self.size)
        position, expected = self.index.position_of(offset - 1)
        self._check_entry(window, position, expected)
        end = self.base
        while position < self.size:
            base, batch_end, size, _ = window.head(position)
            if base >= offset:
                break
            if batch_end > offset:
                reason = f"a batch covers [{base}, {batch_end}), but should end at offset {offset}"
                raise BadBatch(position, reason)
            position += size
            end = batch_end
        if end != offset and not has_holes:
            raise BadBatch(position, f"a batch ends at offset {end}, but should end at {offset}")
        return position, end

    # --- looking up ------------------------------------------------------------------------------

    def read(
        self,
        offset: Offset,
        bytes_max: int,
        *,
        first_always: bool = True,
        limit: Offset | None = None,
    ) -> memoryview | None:
        """Return whole batches starting with that of `offset`; None if the segment has none there.

        Without `first_always`, returns nothing if the first is larger than `bytes_max`. Raises
        CorruptLog if a batch reaches beyond `limit`, where the next segment starts: a reader would
        continue after it and skip what lies between.
        """
        end = OFFSET_MAX if limit is None else limit
        return self._guarded(lambda: self._read(offset, bytes_max, end, first_always=first_always))

    def _read(
        self, offset: Offset, bytes_max: int, limit: Offset, *, first_always: bool
    ) -> memoryview | None:
        window = Window(self.file, self.size)
        position = self._resume(window, offset, bytes_max)
        if position is None:
            start, expected = self.index.position_of(offset)
            window.load(start, bytes_max + self._config.index_interval_bytes)
            position = self._seek(window, start, expected, offset)
        if position >= self.size:
            self._check_ended()
            return None
        if not first_always and window.head(position)[2] > bytes_max:
            return EMPTY
        data, end = window.batches(position, bytes_max)
        if end > limit:
            raise BadBatch(position, f"a batch ends at offset {end}, beyond {limit}")
        self._next_reads[end] = position + len(data)
        if len(self._next_reads) > NEXT_READS_MAX:
            del self._next_reads[next(iter(self._next_reads))]
        return data

    def _resume(self, window: Window, offset: Offset, bytes_max: int) -> int | None:
        """Return where the batch of `offset` starts if a read ended just before it."""
        position = self._next_reads.get(offset, self.size)
        if position >= self.size:
            return None
        window.load(position, bytes_max)
        base, end, _, _ = window.head(position)
        return position if base <= offset < end else None  # otherwise there is a hole

    def bytes_from(self, offset: Offset) -> int:
        """Estimate the bytes from `offset` to the end, never too few; reads none."""
        return self.size - self.index.position_of(offset)[0]

    def batch_base(self, offset: Offset) -> Offset | None:
        """Return the base offset of the batch of `offset`, or of the next; None at the end."""
        return self._guarded(lambda: self._batch_base(offset))

    def _batch_base(self, offset: Offset) -> Offset | None:
        start, expected = self.index.position_of(offset)
        window = Window(self.file, self.size)
        position = self._seek(window, start, expected, offset)
        if position < self.size:
            return window.head(position)[0]
        self._check_ended()
        return None

    def _check_ended(self) -> None:
        """Raise if the segment once held more batches; called where none is left."""
        if self.damage is not None:
            raise CorruptLog(self.path, self.size, self.damage, offset=self.base)

    def _seek(self, window: Window, position: int, expected: Offset, offset: Offset) -> int:
        """Return where the first batch that ends after `offset` starts."""
        self._check_entry(window, position, expected)
        end = self.base
        # Terminates at the segment's end, because every batch has a size.
        while position < self.size:
            base, batch_end, size, _ = window.head(position)
            if base < end:
                raise BadBatch(position, f"offset {base} follows offset {end - 1}")
            if batch_end > offset:
                return position
            position += size
            end = batch_end
        return position

    def _check_entry(self, window: Window, position: int, expected: Offset) -> None:
        """Raise BadBatch if an index entry points here and its batch is not here."""
        if 0 < position < self.size:
            window.check_entry(position, expected)

    def find_time(self, timestamp_ms: int, first: Offset = 0) -> memoryview | None:
        """Return the first batch whose greatest timestamp is not earlier, None if there is none.

        Batches that end before the offset `first` are skipped.
        """
        return self._guarded(lambda: self._find_time(timestamp_ms, first))

    def _find_time(self, timestamp_ms: int, first: Offset) -> memoryview | None:
        position, expected = max(
            self.index.position_of_time(timestamp_ms), self.index.position_of(first)
        )
        window = Window(self.file, self.size)
        self._check_entry(window, position, expected)
        while position < self.size:
            _, end, size, max_timestamp_ms = window.head(position)
            if max_timestamp_ms >= timestamp_ms and end > first:
                return window.batch(position, size)
            position += size
        self._check_ended()
        return None

    def newest_from(self, first: Offset) -> tuple[int, Offset]:
        """Return the greatest timestamp at or after `first`, and where; scans the headers."""
        return self._guarded(lambda: self._newest_from(first))

    def _newest_from(self, first: Offset) -> tuple[int, Offset]:
        position, expected = self.index.position_of(first)
        window = Window(self.file, self.size)
        self._check_entry(window, position, expected)
        newest = NO_TIMESTAMP, first
        while position < self.size:
            base, end, size, max_timestamp_ms = window.head(position)
            if end > first and max_timestamp_ms > newest[0]:
                newest = max_timestamp_ms, max(base, first)
            position += size
        return newest

    def newest(self) -> tuple[int, Offset]:
        """Return the greatest timestamp and the offset of the first batch that has it."""
        if self._index is not None:
            return self._index.max_timestamp_ms, self._index.max_timestamp_offset
        if self._newest is None:
            if self.size == 0:
                self._newest = (NO_TIMESTAMP, self.base)
            else:
                self._newest = peek_newest(self._disk, self.stem, self.base)
        if self._newest is None:
            index = self.index
            self._newest = index.max_timestamp_ms, index.max_timestamp_offset
        return self._newest

    def first_timestamp(self) -> int:
        """Return the greatest timestamp of the first batch, NO_TIMESTAMP if there is no batch."""
        if self.size == 0:
            return NO_TIMESTAMP
        return self._guarded(self._first_timestamp)

    def _first_timestamp(self) -> int:
        window = Window(self.file, self.size)
        window.load(0, HEADER_BYTES)
        return window.head(0)[3]

    # --- the seal --------------------------------------------------------------------------------

    def seal(self) -> Seal | None:
        """Return the segment's seal; None if it takes reading the whole segment."""
        if self.checksum is None:
            return None
        try:
            with disk_errors(self.path):
                position = self._last_position()
                first = self.file.read(0, STAMP_BYTES)
                last = self.file.read(position, STAMP_BYTES)
        except (BadBatch, DiskFailed):
            return None  # the next reader will find the damage
        return Seal(
            base=self.base,
            end=self.end,
            bytes=self.size,
            checksum=self.checksum,
            first=crc32c(first),
            last_position=position,
            last=crc32c(last),
        )

    def _last_position(self) -> int:
        """Return where the last batch starts."""
        window = Window(self.file, self.size)
        position = after = self.index.offsets.last_position
        while after < self.size:
            position, after = after, after + window.head(after)[2]
        return position

    def doubt(self, size: int, reason: str) -> None:
        """Return no batch from position `size` onwards: the data there is not what was written."""
        self.unload_index()
        self._newest = None
        self._next_reads.clear()
        self.size = size
        self.damage = reason

    # --- the index -------------------------------------------------------------------------------

    @property
    def index(self) -> SegmentIndex:
        """The segment's indexes; read or rebuilt if they are not in memory."""
        if self._index is None:
            index = self.new_index()
            try:
                with disk_errors(self.path):
                    index.load(Window(self.file, self.size), self.size)
            except BadBatch:
                self._rebuild(index, self.size)
            self._index = index
            self._repair_files(index)
        return self._index

    @property
    def is_loaded(self) -> bool:
        """Whether the indexes are in memory."""
        return self._index is not None

    def start_index(self) -> SegmentIndex:
        """Start with empty indexes, for batches still to be written."""
        self._index = self.new_index()
        return self._index

    def load_index(self, position: int, end_offset: Offset) -> Offset:
        """Load the indexes up to `position` from their files, for a segment that continues there.

        Returns the end offset of the last batch before.
        """
        window = Window(self.file, position)
        index = self._index = self.new_index()
        try:
            with disk_errors(self.path):
                return index.load_up_to(window, position, end_offset)
        except BadBatch:
            return self._rebuild(index, position)

    def unload_index(self) -> None:
        """Unload the indexes of a closed segment until they are needed again."""
        if self._index is not None:
            self._newest = self.newest()
            self._index.close()
            self._index = None

    def new_index(self) -> SegmentIndex:
        """Return empty indexes for this segment."""
        return SegmentIndex(self._disk, self.stem, self.base, self._config.index_interval_bytes)

    def _rebuild(self, index: SegmentIndex, position: int) -> Offset:
        self._next_reads.clear()
        try:
            with disk_errors(self.path):
                return index.rebuild(Window(self.file, position), position)
        except BadBatch as bad:
            raise CorruptLog(self.path, bad.position, bad.reason, offset=self.base) from bad

    def _repair_files(self, index: SegmentIndex) -> None:
        if not self.is_closed:
            index.trim_files()
            return
        index.finish()
        if self.is_index_hidden:
            return
        with suppress(DiskFull, DiskFailed):  # the indexes serve from memory as well
            index.write_repaired()

    def _guarded(self, look_up: Callable[[], _Found]) -> _Found:
        """Run a lookup; if an index entry was wrong, rebuild the index and retry once."""
        try:
            with disk_errors(self.path):
                return look_up()
        except BadBatch:
            self._rebuild(self.index, self.size)
            self._repair_files(self.index)
        try:
            with disk_errors(self.path):
                return look_up()
        except BadBatch as bad:
            raise CorruptLog(self.path, bad.position, bad.reason, offset=self.base) from bad

    @property
    def files(self) -> list[File]:
        """The files that are open."""
        return [self.file] if self._index is None else [self.file, *self._index.files]

    # --- compacting ------------------------------------------------------------------------------

    def batches(self) -> Iterator[BatchView]:
        """Yield all batches, checked; raises CorruptLog at a damaged one."""
        window = Window(self.file, self.size)
        position = 0
        while position < self.size:
            try:
                with disk_errors(self.path):
                    window.load_unless_there(position, SCAN_BYTES)
                    size = window.head(position)[2]
                    view = BatchView(window.batch(position, size, ahead_bytes=SCAN_BYTES))
                view.check_crc()
            except (BadBatch, BatchError) as bad:
                raise CorruptLog(self.path, position, str(bad), offset=self.base) from bad
            yield view
            position += size
        self._check_ended()

    def hide_index(self) -> None:
        """Remove the index files and write none until `is_index_hidden` is cleared.

        For a file about to be replaced: once this is durable, no crash can leave indexes beside
        batches that they do not match.
        """
        self.is_index_hidden = True
        index = self.new_index() if self._index is None else self._index
        index.remove_files()  # not read first: the batches may be damaged

    def take_file(self, path: str, index: SegmentIndex) -> None:
        """Give a synced file with the same offsets this segment's name; `index` belongs to it.

        The indexes were hidden, durably. The name is durable once the folder is synced.
        """
        assert self.is_index_hidden
        with disk_errors(self.path):
            self._disk.rename(path, self.path)
            file = self._disk.open(self.path)
            size = file.size()
        self.close()
        self.file = file
        self.size = size
        self.damage = None
        self.take_index(index)

    def take_index(self, index: SegmentIndex) -> None:
        """Use indexes that were built with the current file."""
        index.finish()
        self._index = index
        self._newest = None
        self._next_reads.clear()

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the files."""
        self.file.close()
        if self._index is not None:
            self._index.close()

    def remove(self) -> None:
        """Remove the files; data already read from them stays valid."""
        self.close()
        remove_files(self._disk, self.stem)


def remove_files(disk: Disk, stem: str) -> None:
    """Remove a segment's existing files; the caller syncs the folder."""
    with disk_errors(stem):
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            with suppress(FileNotFoundError):
                disk.remove(stem + suffix)
