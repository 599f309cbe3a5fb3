"""Sets of offsets as bit masks: one integer for each 1,024 offsets.

Python's integers are fast at this: a range of 500 offsets takes as long as one offset. A *chunk* is
the number of such an integer, a *bit* the position in it: `offset = (chunk << 10) + bit`.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kafkaesque.types import Offset

CHUNK_SHIFT = 10
CHUNK_OFFSETS = 1 << CHUNK_SHIFT
BIT_MASK = CHUNK_OFFSETS - 1

Bits: TypeAlias = int
"""A mask of offsets in one chunk."""

ALL: Bits = (1 << CHUNK_OFFSETS) - 1


def between(first: int, last: int) -> Bits:
    """Return the mask of the bits from first to last."""
    return (2 << last) - (1 << first)


def pieces(first: Offset, last: Offset) -> Sequence[tuple[int, Bits]]:
    """Return the chunks of a range of offsets, each with its mask."""
    chunk, end = first >> CHUNK_SHIFT, last >> CHUNK_SHIFT
    low, high = first & BIT_MASK, last & BIT_MASK
    if chunk == end and low <= high:
        return ((chunk, (2 << high) - (1 << low)),)
    if first > last:
        return ()
    inner = [(each, ALL) for each in range(chunk + 1, end)]
    return ((chunk, between(low, BIT_MASK)), *inner, (end, between(0, high)))


def ones(bits: Bits) -> int:
    """Return how many bits are set from bit 0 up, without a gap."""
    return (~bits & (bits + 1)).bit_length() - 1


def first_bit(bits: Bits) -> int:
    """Return the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def runs(bits: Bits) -> Iterator[tuple[int, int]]:
    """Yield first and last bit of each run of set bits, ascending."""
    while bits:
        first = first_bit(bits)
        last = first + ones(bits >> first) - 1
        yield first, last
        bits = bits >> (last + 1) << (last + 1)


def lowest(bits: Bits, count: int) -> Bits:
    """Return only the lowest set bits, at most this many."""
    if bits.bit_count() <= count:
        return bits
    low, high = 0, bits.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (bits & ((1 << middle) - 1)).bit_count() < count:
            low = middle + 1
        else:
            high = middle
    return bits & ((1 << low) - 1)


def to_bitmap(bits: Bits) -> bytes:
    """Return the mask as bytes, bit 0 first, as short as possible."""
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def from_bitmap(data: bytes) -> Bits:
    """Return the mask of a bitmap; bits beyond the chunk are dropped."""
    return int.from_bytes(data[: CHUNK_OFFSETS // 8], "little")


class OffsetBits:
    """A set of offsets; no chunk in it is empty."""

    __slots__ = ("chunks",)

    def __init__(self) -> None:
        self.chunks: dict[int, Bits] = {}

    def get(self, chunk: int) -> Bits:
        """Return the mask of a chunk."""
        return self.chunks.get(chunk, 0)

    def add(self, chunk: int, bits: Bits) -> None:
        """Add offsets of one chunk."""
        if bits:
            self.chunks[chunk] = self.chunks.get(chunk, 0) | bits

    def remove(self, chunk: int, bits: Bits) -> None:
        """Remove offsets of one chunk."""
        before = self.chunks.get(chunk)
        if before is None:
            return
        if after := before & ~bits:
            self.chunks[chunk] = after
        else:
            del self.chunks[chunk]

    def remove_below(self, offset: Offset) -> None:
        """Remove all offsets below this one."""
        edge = offset >> CHUNK_SHIFT
        for chunk in [chunk for chunk in self.chunks if chunk < edge]:
            del self.chunks[chunk]
        if low := offset & BIT_MASK:
            self.remove(edge, between(0, low - 1))

    def first(self) -> Offset | None:
        """Return the lowest offset."""
        if not self.chunks:
            return None
        chunk = min(self.chunks)
        return (chunk << CHUNK_SHIFT) + first_bit(self.chunks[chunk])

    def end(self) -> Offset:
        """Return the offset after the highest one, or 0."""
        if not self.chunks:
            return 0
        chunk = max(self.chunks)
        return (chunk << CHUNK_SHIFT) + self.chunks[chunk].bit_length()

    def __len__(self) -> int:
        return sum(bits.bit_count() for bits in self.chunks.values())
