"""Reads batch headers from a segment; one read serves as many of them as it holds.

Lookups, index rebuilds and recovery all scan from header to header. The bytes may be damaged, or an
index may point to the middle of a batch, so nothing here trusts them; it raises `BadBatch`, and the
caller decides what that means.
"""

import struct

from kafkaesque.log.disk import File
from kafkaesque.log.disk_errors import is_unreadable
from kafkaesque.record.view import HEADER_BYTES, LENGTH_OVERHEAD, MAGIC, peek_size
from kafkaesque.types import Offset

# base offset, length, magic, last offset delta, max timestamp: a part of the header in view.py
_HEAD = struct.Struct(">qi4xb6xi8xq")

WALK_BYTES = 64 << 10
"""Bytes read at once when scanning headers: several batches of the usual size."""

SCAN_BYTES = 1 << 20
"""Bytes read at once when scanning whole batches; a larger batch is read whole."""

Head = tuple[Offset, Offset, int, int]
"""Base offset, end offset, size in bytes and greatest timestamp of a batch."""


class BadBatch(Exception):
    """There is no whole batch at this position."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


class UnreadableBatch(BadBatch):
    """The disk cannot read this position; the content is unknown."""


class Window:
    """The part of a file that was read last; `end` is where the file's batches end."""

    __slots__ = ("_data", "_end", "_file", "_start", "_stop")

    def __init__(self, file: File, end: int) -> None:
        self._file = file
        self._end = end
        self._start = 0
        self._stop = 0
        self._data = b""

    def load(self, position: int, length: int, least: int = HEADER_BYTES) -> None:
        """Read `length` bytes from `position`, or as many as there are.

        If the disk cannot read all of it, `least` bytes are enough: the rest is behind a bad
        sector.
        """
        try:
            self._data = self._file.read(position, min(length, self._end - position))
        except OSError as error:
            if not is_unreadable(error):
                raise
            self._data = self._read_least(position, min(length, least, self._end - position))
        self._start = position
        self._stop = position + len(self._data)

    def _read_least(self, position: int, length: int) -> bytes:
        try:
            return self._file.read(position, length)
        except OSError as error:
            if not is_unreadable(error):
                raise
            reason = f"the disk cannot read {length} bytes: {error.strerror}"
            raise UnreadableBatch(position, reason) from error

    def load_unless_there(self, position: int, length: int) -> None:
        """Read `length` bytes from `position`, unless at least a header is already loaded."""
        if position < self._start or position + HEADER_BYTES > self._stop:
            self.load(position, length)

    def head(self, position: int) -> Head:
        """Return the header of the batch at `position`; its records are not checked."""
        self.load_unless_there(position, WALK_BYTES)
        if position + HEADER_BYTES > self._stop:
            raise BadBatch(position, f"{self._stop - position} bytes are not a batch header")
        base, length, magic, last_delta, max_timestamp = _HEAD.unpack_from(
            self._data, position - self._start
        )
        size = length + LENGTH_OVERHEAD
        if magic != MAGIC or size < HEADER_BYTES or base < 0 or last_delta < 0:
            raise BadBatch(position, "these bytes are not a batch header")
        if position + size > self._end:
            raise BadBatch(position, f"a batch of {size} bytes reaches beyond byte {self._end}")
        return base, base + last_delta + 1, size, max_timestamp

    def check_entry(self, position: int, offset: Offset) -> None:
        """Raise unless the batch at `position` holds `offset`, as an index entry claims."""
        base, end, _, _ = self.head(position)
        if not base <= offset < end:
            raise BadBatch(position, f"the batch of offset {offset} is not here")

    def batch(self, position: int, size: int, *, ahead_bytes: int = 0) -> memoryview:
        """Return the bytes of the batch at `position`, whose size the header gave."""
        if position < self._start or position + size > self._stop:
            self.load(position, max(size, ahead_bytes), least=size)
            if len(self._data) < size:
                raise BadBatch(position, "the file ends within the batch")
        return memoryview(self._data)[position - self._start : position - self._start + size]

    def batches(self, position: int, bytes_max: int) -> tuple[memoryview, Offset]:
        """Return whole batches from `position`: the first, then those that fit and are loaded.

        Also returns the end offset of the last of them.
        """
        _, end, size, _ = self.head(position)
        first = self.batch(position, size)
        data = self._data
        start = last = position - self._start
        stop = start + size
        limit = min(start + bytes_max, len(data))
        # Terminates: each iteration advances `stop` by at least a header.
        while stop + LENGTH_OVERHEAD <= limit:
            size = peek_size(data, stop)[1]
            if size < HEADER_BYTES or stop + size > limit:
                break
            last = stop
            stop += size
        if last == start:
            return first, end
        return memoryview(data)[start:stop], self.head(last + self._start)[1]
