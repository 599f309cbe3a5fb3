"""The two index files of one segment, kept and repaired together.

They are only an aid: everything in them can be recovered by scanning the batches' headers. So
entries are collected in memory and written rarely, nothing waits for them to be durable, and they
are checked when read after a crash.
"""

from bisect import bisect_left
from contextlib import suppress

from kafkaesque.errors import DiskFull, LogError
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors, read_if_readable
from kafkaesque.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from kafkaesque.log.offset_index import RELATIVE_MAX, OffsetIndex
from kafkaesque.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from kafkaesque.log.time_index import NO_TIMESTAMP, TimeIndex
from kafkaesque.log.window import BadBatch, Window
from kafkaesque.types import Offset

CLEANED_SUFFIX = ".cleaned"
"""Suffix of an unfinished file; worthless after a crash."""


class SegmentIndex:
    """Offset index and time index of the segment at `base`, and its greatest timestamp so far.

    `note` must be called for every batch, in order.
    """

    __slots__ = (
        "_base",
        "_disk",
        "_interval_bytes",
        "_next_position",
        "_offset_file",
        "_offset_path",
        "_offsets_written",
        "_time_file",
        "_time_path",
        "_times_written",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "offsets",
        "times",
    )

    def __init__(self, disk: Disk, stem: str, base: Offset, interval_bytes: int) -> None:
        self._disk = disk
        self._base = base
        self._interval_bytes = interval_bytes
        self._offset_path = stem + ".index"
        self._time_path = stem + ".timeindex"
        self._offset_file: File | None = None
        self._time_file: File | None = None
        self.max_timestamp_ms: int = NO_TIMESTAMP
        self.max_timestamp_offset: Offset = base
        self._clear()

    def _clear(self) -> None:
        self.offsets = OffsetIndex()
        self.times = TimeIndex()
        self._offsets_written = 0
        self._times_written = 0
        self._resume()

    def note(self, base: Offset, max_timestamp_ms: int, position: int) -> None:
        """Add the batch at `position`, after all noted before."""
        if position >= self._next_position:
            self._add_entries(base, position)
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = base

    def _add_entries(self, base: Offset, position: int) -> None:
        relative = base - self._base
        # After a huge hole an offset may not fit: such a batch is the segment's last, found from
        # the entry before.
        if relative <= RELATIVE_MAX:
            self.offsets.add(relative, position)
            self._next_position = position + self._interval_bytes
            self.finish()

    def finish(self) -> None:
        """Add an entry for the greatest timestamp so far; due when the segment is closed."""
        if self.max_timestamp_ms > self.times.last_timestamp:
            # An offset within a hole stands for the batch after the hole, so it may be clamped.
            relative = min(self.max_timestamp_offset - self._base, RELATIVE_MAX)
            self.times.add(self.max_timestamp_ms, relative)

    def position_of(self, offset: Offset) -> tuple[int, Offset]:
        """Return where to start looking for the batch of `offset`, and an offset found there."""
        return self._entry(self.offsets.floor(min(offset - self._base, RELATIVE_MAX)))

    def position_of_time(self, timestamp_ms: int) -> tuple[int, Offset]:
        """Return where to start searching for a batch not earlier, and an offset found there."""
        if timestamp_ms <= NO_TIMESTAMP:
            return 0, self._base
        number = self.times.ceiling(timestamp_ms)
        if number == len(self.times):
            return self._entry(len(self.offsets) - 1)
        return self._entry(self.offsets.floor(self.times.relatives[number]))

    def _entry(self, number: int) -> tuple[int, Offset]:
        if number < 0:
            return 0, self._base
        return self.offsets.positions[number], self._base + self.offsets.relatives[number]

    # --- loading and completing -----------------------------------------------------------------

    def load(self, window: Window, log_bytes: int) -> None:
        """Read the files of a closed segment; add missing entries by scanning its batches.

        Raises BadBatch when an entry is wrong or the segment itself is damaged.
        """
        if self._read(log_bytes) and self._lacks_nothing(window, log_bytes):
            return
        self._go_back_to_last_time()
        self._resume()
        self._complete(window, log_bytes)
        self.finish()

    def load_up_to(self, window: Window, log_bytes: int, end_offset: Offset) -> Offset:
        """Read the files of a segment that was active at the stop; drop entries beyond `log_bytes`.

        Returns the end offset of the last batch before `log_bytes`.
        """
        self._read(log_bytes)
        self._forget_times(end_offset)
        # The time index may have lost more than the offset index, and the greatest timestamp at the
        # end is not written anywhere: go back to the last batch that both cover.
        self._go_back_to_last_time()
        self._resume()
        return self._complete(window, log_bytes)

    def rebuild(self, window: Window, log_bytes: int) -> Offset:
        """Rebuild the entries by scanning all batches."""
        self._clear()
        return self._complete(window, log_bytes)

    def _read(self, log_bytes: int) -> bool:
        offset_data, time_data = self._file_data()
        self.offsets = OffsetIndex.decode(offset_data, log_bytes)
        self.times = TimeIndex.decode(time_data)
        self._offsets_written = len(self.offsets)
        self._times_written = len(self.times)
        self._resume()
        return (
            len(offset_data) == len(self.offsets) * OFFSET_ENTRY_BYTES
            and len(time_data) == len(self.times) * TIME_ENTRY_BYTES
            and len(self.times) > 0
        )

    def _lacks_nothing(self, window: Window, log_bytes: int) -> bool:
        """Return whether no entry is due after the last one."""
        position = self.offsets.last_position
        self._check_last_entry(window, log_bytes)
        while position < log_bytes and position < self._next_position:
            position += window.head(position)[2]
        return position >= log_bytes

    def _go_back_to_last_time(self) -> None:
        number = self.offsets.floor(self.times.relatives[-1]) if len(self.times) else -1
        self.offsets.keep(number + 1)
        self._offsets_written = min(self._offsets_written, len(self.offsets))

    def _forget_times(self, end_offset: Offset) -> None:
        self.times.keep(bisect_left(self.times.relatives, end_offset - self._base))
        self._times_written = min(self._times_written, len(self.times))

    def _file_data(self) -> tuple[bytes, bytes]:
        with disk_errors(self._offset_path):
            self._offset_file = _open(self._disk, self._offset_path)
            offset_data = _content(self._offset_file)
        with disk_errors(self._time_path):
            self._time_file = _open(self._disk, self._time_path)
            time_data = _content(self._time_file)
        return offset_data, time_data

    def _complete(self, window: Window, log_bytes: int) -> Offset:
        """Note the batches from the last entry onwards; returns the end offset of the last."""
        self._check_last_entry(window, log_bytes)
        position = self.offsets.last_position
        end = self._base
        while position < log_bytes:
            base, batch_end, size, max_timestamp_ms = window.head(position)
            if base < end:
                raise BadBatch(position, f"offset {base} follows offset {end - 1}")
            self.note(base, max_timestamp_ms, position)
            position += size
            end = batch_end
        return end

    def _check_last_entry(self, window: Window, log_bytes: int) -> None:
        position, offset = self._entry(len(self.offsets) - 1)
        if 0 < position < log_bytes:
            window.check_entry(position, offset)

    def _resume(self) -> None:
        """Continue after the last entries."""
        self._next_position = self.offsets.last_position + self._interval_bytes
        self.max_timestamp_ms = self.times.last_timestamp
        self.max_timestamp_offset = self._base + (self.times.relatives[-1] if self.times else 0)

    def cut(self, window: Window, position: int, offset: Offset) -> None:
        """Drop the batches from `position` onwards, whose first offset is `offset`."""
        self.offsets.keep(self.offsets.count_below(position))
        self._offsets_written = min(self._offsets_written, len(self.offsets))
        self._forget_times(offset)
        self._resume()
        self._complete(window, position)

    # --- files ----------------------------------------------------------------------------------

    def write(self) -> list[File]:
        """Bring the files up to date and return them, to be synced with the segment's end."""
        return [self._write_times(), self._write_offsets()]

    def write_repaired(self) -> None:
        """Write the missing entries of a closed segment's files.

        A partial offset index is fine, since its gaps are noticed; a partial time index would pass
        for a complete one, so it is replaced as a whole or not at all. On a full disk there is
        none.
        """
        if self._offsets_written == len(self.offsets) and self._times_written == len(self.times):
            self.trim_files()
            return
        try:
            file = self.begin_writing()
            try:
                with disk_errors(self._time_path):
                    self._disk.sync_now([file], [])
            except LogError:
                self.give_up_writing(file)
                raise
            self.finish_writing(file)
        except DiskFull:
            self.remove_files()
            raise

    def begin_writing(self) -> File:
        """Write the time index to a temporary file; `finish_writing` follows when it is synced."""
        unfinished = self._time_path + CLEANED_SUFFIX
        with disk_errors(self._time_path):
            with suppress(FileNotFoundError):
                self._disk.remove(unfinished)
            file = self._disk.create(unfinished)
            try:
                file.write(0, self.times.encode(0))
            except OSError:
                file.close()
                self._disk.remove(unfinished)
                raise
        return file

    def finish_writing(self, file: File) -> None:
        """Rename the synced time index into place, and write the offset index."""
        file.close()
        with disk_errors(self._time_path):
            self._disk.rename(file.path, self._time_path)
            if self._time_file is not None:
                self._time_file.close()
            self._time_file = self._disk.open(self._time_path)
        self._times_written = len(self.times)
        self._write_offsets()

    def give_up_writing(self, file: File) -> None:
        """Remove the unfinished time index."""
        file.close()
        with disk_errors(self._time_path), suppress(FileNotFoundError):
            self._disk.remove(file.path)

    def remove_files(self) -> None:
        """Remove the files and keep the entries in memory."""
        self.close()
        self._offsets_written = self._times_written = 0
        for path in (self._offset_path, self._time_path):
            with disk_errors(path), suppress(FileNotFoundError):
                self._disk.remove(path)

    def _write_offsets(self) -> File:
        with disk_errors(self._offset_path):
            file = self._offset_file or _open_or_create(self._disk, self._offset_path)
            self._offset_file = file
            start = self._offsets_written
            _replace_tail(file, start * OFFSET_ENTRY_BYTES, self.offsets.encode(start))
        self._offsets_written = len(self.offsets)
        return file

    def _write_times(self) -> File:
        with disk_errors(self._time_path):
            file = self._time_file or _open_or_create(self._disk, self._time_path)
            self._time_file = file
            start = self._times_written
            _replace_tail(file, start * TIME_ENTRY_BYTES, self.times.encode(start))
        self._times_written = len(self.times)
        return file

    def trim_files(self) -> list[File]:
        """Cut dropped entries off the existing files, and return the files that were longer.

        Needs no room on the disk.
        """
        cut = []
        with disk_errors(self._offset_path):
            self._offset_file = self._offset_file or _open(self._disk, self._offset_path)
            cut += _cut(self._offset_file, self._offsets_written * OFFSET_ENTRY_BYTES)
        with disk_errors(self._time_path):
            self._time_file = self._time_file or _open(self._disk, self._time_path)
            cut += _cut(self._time_file, self._times_written * TIME_ENTRY_BYTES)
        return cut

    @property
    def files(self) -> list[File]:
        """The open files."""
        return [file for file in (self._offset_file, self._time_file) if file is not None]

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            file.close()
        self._offset_file = self._time_file = None


def peek_newest(disk: Disk, stem: str, base: Offset) -> tuple[int, Offset] | None:
    """Return greatest timestamp and its offset from a closed segment's file, None if in doubt."""
    path = stem + ".timeindex"
    with disk_errors(path):
        file = _open(disk, path)
        if file is None:
            return None
        size = file.size()
        start = max(size - 2 * TIME_ENTRY_BYTES, 0)
        data = read_if_readable(file, start, size - start)
        file.close()
    entries = TimeIndex.decode(data)
    # Two entries suffice to distinguish entries from the zeros at the end of a torn file.
    if size % TIME_ENTRY_BYTES or not len(entries) or len(entries) * TIME_ENTRY_BYTES < len(data):
        return None
    return entries.last_timestamp, base + entries.relatives[-1]


def _open(disk: Disk, path: str) -> File | None:
    try:
        return disk.open(path)
    except FileNotFoundError:
        return None


def _open_or_create(disk: Disk, path: str) -> File:
    return _open(disk, path) or disk.create(path)


def _content(file: File | None) -> bytes:
    return b"" if file is None else read_if_readable(file, 0, file.size())


def _replace_tail(file: File, position: int, data: bytes) -> None:
    """Make `data` the end of the file, replacing anything after `position`."""
    if data:
        file.write(position, data)
    _cut(file, position + len(data))


def _cut(file: File | None, size: int) -> list[File]:
    if file is None or file.size() <= size:
        return []
    file.truncate(size)
    return [file]
