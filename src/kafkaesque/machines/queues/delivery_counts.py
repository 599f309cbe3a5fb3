"""How many deliveries of each offset have ended, kept for those that will be delivered again."""

from collections.abc import Iterator
from typing import NamedTuple

from kafkaesque.machines.queues.offset_bits import CHUNK_SHIFT, Bits, first_bit, ones
from kafkaesque.types import Offset


class Run(NamedTuple):
    """Neighbouring bits of a chunk with equal counts."""

    first: int
    last: int
    deliveries: int


class DeliveryCounts:
    """By chunk and count, the mask of the offsets; most offsets have no count and are not here."""

    __slots__ = ("chunks",)

    def __init__(self) -> None:
        self.chunks: dict[int, dict[int, Bits]] = {}

    def put(self, chunk: int, bits: Bits, count: int) -> None:
        """Set the count of offsets of one chunk."""
        self.clear(chunk, bits)
        masks = self.chunks.setdefault(chunk, {})
        masks[count] = masks.get(count, 0) | bits

    def clear(self, chunk: int, bits: Bits) -> None:
        """Forget the counts of offsets of one chunk."""
        masks = self.chunks.get(chunk)
        if masks is None:
            return
        for count, mask in list(masks.items()):
            if after := mask & ~bits:
                masks[count] = after
            else:
                del masks[count]
        if not masks:
            del self.chunks[chunk]

    def clear_below(self, offset: Offset) -> None:
        """Forget the counts of all offsets below this one."""
        edge = offset >> CHUNK_SHIFT
        for chunk in [chunk for chunk in self.chunks if chunk < edge]:
            del self.chunks[chunk]
        self.clear(edge, (1 << (offset & ((1 << CHUNK_SHIFT) - 1))) - 1)

    def runs(self, chunk: int, bits: Bits) -> Iterator[Run]:
        """Yield these offsets as runs of equal counts, ascending; those without a count have 0."""
        masks = self.chunks.get(chunk, {})
        while bits:
            first = first_bit(bits)
            count, alike = 0, bits
            for each, mask in masks.items():
                if mask >> first & 1:
                    count, alike = each, bits & mask
                    break
                alike &= ~mask
            last = first + ones(alike >> first) - 1
            yield Run(first, last, count)
            bits = bits >> (last + 1) << (last + 1)

    def counted(self, chunk: int) -> Bits:
        """Return the mask of the offsets of a chunk that have a count."""
        bits = 0
        for mask in self.chunks.get(chunk, {}).values():
            bits |= mask
        return bits

    def end(self) -> Offset:
        """Return the offset after the highest one with a count, or 0."""
        if not self.chunks:
            return 0
        chunk = max(self.chunks)
        return (chunk << CHUNK_SHIFT) + self.counted(chunk).bit_length()
