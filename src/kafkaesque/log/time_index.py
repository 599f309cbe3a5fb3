"""The sparse index of one segment by time: the growth of its greatest timestamp.

An entry is (timestamp 8 bytes, offset relative to the segment's base 4 bytes), big-endian: no batch
before the entry was made has a later timestamp, and the batch of that offset is the first with this
one. Both increase strictly. Entries are made together with those of the offset index, if the
greatest timestamp has grown since the last one, plus a last one when the segment is closed.

So a timestamp is found by its *ceiling*: the first entry that is not earlier. If the timestamp had
been reached before the interval of this entry's batch, there would be an earlier entry.
`docs/reference/format-time-index.md` has an example worked by hand.
"""

import struct
import sys
from array import array
from bisect import bisect_left
from typing import Literal

from kafkaesque.log.offset_index import rising_count

ENTRY = struct.Struct(">qi")
ENTRY_BYTES = ENTRY.size

NO_TIMESTAMP = -1
"""The timestamp of Kafka batches whose producer set none; it is never indexed."""


class TimeIndex:
    """The entries of one segment, in memory as two arrays."""

    __slots__ = ("relatives", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.relatives = array("i")

    @classmethod
    def decode(cls, data: bytes) -> "TimeIndex":
        """Read a file's bytes up to the first entry that cannot be right."""
        index = cls()
        index.timestamps = _column("q", data, 0)
        index.relatives = _column("i", data, 8)
        valid = min(
            rising_count(index.timestamps, above=NO_TIMESTAMP),
            rising_count(index.relatives, above=-1),
        )
        index.keep(valid)
        return index

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def last_timestamp(self) -> int:
        """The timestamp of the last entry."""
        return self.timestamps[-1] if self.timestamps else NO_TIMESTAMP

    def add(self, timestamp_ms: int, relative: int) -> None:
        """Append an entry."""
        self.timestamps.append(timestamp_ms)
        self.relatives.append(relative)

    def ceiling(self, timestamp_ms: int) -> int:
        """Return the number of the first entry that is not earlier, or the number of entries."""
        return bisect_left(self.timestamps, timestamp_ms)

    def keep(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        del self.timestamps[count:]
        del self.relatives[count:]

    def encode(self, start: int) -> bytes:
        """Return the file's bytes, starting with entry `start`."""
        pairs = zip(self.timestamps[start:], self.relatives[start:], strict=True)
        return b"".join(ENTRY.pack(timestamp, relative) for timestamp, relative in pairs)


def _column(code: Literal["q", "i"], data: bytes, start: int) -> "array[int]":
    """Return one field of all entries; loops over the field's bytes, not over the entries."""
    numbers = array(code)
    width = numbers.itemsize
    count = len(data) // ENTRY_BYTES
    stop = count * ENTRY_BYTES
    field = bytearray(count * width)
    for number in range(width):
        field[number::width] = data[start + number : stop : ENTRY_BYTES]
    numbers.frombytes(field)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
