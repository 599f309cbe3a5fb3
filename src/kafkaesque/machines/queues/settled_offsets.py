"""What must survive a crash above the start: which offsets are done, why, and delivery counts."""

from enum import Enum
from typing import NamedTuple

from kafkaesque.machines.queues.delivery_counts import DeliveryCounts
from kafkaesque.machines.queues.offset_bits import (
    BIT_MASK,
    CHUNK_SHIFT,
    Bits,
    OffsetBits,
    ones,
)
from kafkaesque.types import Offset


class ChunkBits(NamedTuple):
    """What is done in a chunk, and why."""

    done: Bits
    rejected: Bits
    limit: Bits

    def since(self, bit: int) -> "ChunkBits":
        """Return only what is said from a bit on."""
        return ChunkBits(*(each >> bit << bit for each in self))


NOTHING_DONE = ChunkBits(0, 0, 0)


class Reason(Enum):
    """Why an offset is done, unless a member accepted it or there is no record."""

    REJECTED = "rejected"
    LIMIT = "limit"
    """It was delivered too often."""


class SettledOffsets:
    """The offsets above the start that are done, and the delivery counts of those that are not."""

    __slots__ = ("counts", "done", "limit", "rejected", "touched")

    def __init__(self) -> None:
        self.done = OffsetBits()
        self.rejected = OffsetBits()
        self.limit = OffsetBits()
        self.counts = DeliveryCounts()
        self.touched: set[int] = set()
        """Chunks that have changed since they were written."""

    def finish(self, chunk: int, bits: Bits, reason: Reason | None = None) -> None:
        """Mark offsets as done."""
        done = self.done.chunks
        done[chunk] = done.get(chunk, 0) | bits
        self.touched.add(chunk)
        if self.counts.chunks:
            self.counts.clear(chunk, bits)
        if reason is Reason.REJECTED:
            self.rejected.add(chunk, bits)
        elif reason is Reason.LIMIT:
            self.limit.add(chunk, bits)

    def count(self, chunk: int, bits: Bits, deliveries: int) -> None:
        """Set the delivery count of offsets that are not done."""
        self.counts.put(chunk, bits, deliveries)
        self.touched.add(chunk)

    def done_until(self, start: Offset) -> Offset:
        """Return the first offset from `start` on that is not done, and forget what is below it."""
        chunks = self.done.chunks
        first = start
        while chunks:
            chunk, bit = start >> CHUNK_SHIFT, start & BIT_MASK
            bits = chunks.get(chunk, 0) >> bit
            if not bits & 1:
                break
            done = ones(bits)
            start += done
            if above := bits >> done:
                chunks[chunk] = above << (bit + done)
                break
            del chunks[chunk]
        if start > first and (self.rejected.chunks or self.limit.chunks or self.counts.chunks):
            self.remove_below(start)
        return start

    def of(self, chunk: int) -> ChunkBits:
        """Return what is done in a chunk."""
        return ChunkBits(self.done.get(chunk), self.rejected.get(chunk), self.limit.get(chunk))

    def remove_below(self, offset: Offset) -> None:
        """Forget everything below an offset."""
        for bits in (self.done, self.rejected, self.limit):
            if bits.chunks:
                bits.remove_below(offset)
        if self.counts.chunks:
            self.counts.clear_below(offset)

    def end(self) -> Offset:
        """Return the offset after the highest one that is known here, or 0."""
        return max(self.done.end(), self.counts.end())
