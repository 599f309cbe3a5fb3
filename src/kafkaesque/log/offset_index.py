"""The sparse index of one segment: the position of a batch by its offset.

An entry is (offset relative to the segment's base, position), 4 bytes each, big-endian; it gives
the first byte of a batch under that batch's base offset. Both increase strictly. There is one entry
per `index_interval_bytes` of batches, and none for the batch at position 0, which needs none.
`docs/reference/format-offset-index.md` has an example worked by hand.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import lt

ENTRY_BYTES = 8

RELATIVE_MAX = (1 << 31) - 1
"""Relative offsets and positions are signed 32-bit numbers in the file, as in Kafka's."""


class OffsetIndex:
    """The entries of one segment, in memory as two arrays."""

    __slots__ = ("positions", "relatives")

    def __init__(self) -> None:
        self.relatives = array("i")
        self.positions = array("i")

    @classmethod
    def decode(cls, data: bytes, log_bytes: int) -> "OffsetIndex":
        """Read a file's bytes up to the first entry that cannot be right.

        A torn file contains a partial entry, zeros, or entries beyond the log's end: all of them
        break the strict order or the bounds.
        """
        numbers = array("i", data[: len(data) // ENTRY_BYTES * ENTRY_BYTES])
        if sys.byteorder == "little":
            numbers.byteswap()
        index = cls()
        index.relatives = numbers[0::2]
        index.positions = numbers[1::2]
        valid = min(rising_count(index.relatives, above=0), rising_count(index.positions, above=0))
        index.keep(min(valid, bisect_left(index.positions, log_bytes, 0, valid)))
        return index

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def last_position(self) -> int:
        """The position of the last entry; without entries 0, the segment's first batch."""
        return self.positions[-1] if self.positions else 0

    def add(self, relative: int, position: int) -> None:
        """Append an entry."""
        self.relatives.append(relative)
        self.positions.append(position)

    def floor(self, relative: int) -> int:
        """Return the number of the last entry at or before the offset, -1 for the file's start."""
        return bisect_right(self.relatives, relative) - 1

    def keep(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        del self.relatives[count:]
        del self.positions[count:]

    def count_below(self, position: int) -> int:
        """Return how many entries lie before `position`."""
        return bisect_left(self.positions, position)

    def encode(self, start: int) -> bytes:
        """Return the file's bytes, starting with entry `start`."""
        numbers = array("i", bytes((len(self) - start) * ENTRY_BYTES))
        numbers[0::2] = self.relatives[start:]
        numbers[1::2] = self.positions[start:]
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()


def rising_count(numbers: "array[int]", *, above: int) -> int:
    """Return how many numbers from the start are greater than `above` and rise strictly."""
    if not numbers or (numbers[0] > above and all(map(lt, numbers, numbers[1:]))):
        return len(numbers)
    for count, number in enumerate(numbers):
        if number <= above:
            return count
        above = number
    raise AssertionError("one of them must have failed to rise")
