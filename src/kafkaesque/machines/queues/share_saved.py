"""What the log knows of a share group on one partition, and what it must still be told.

Records are complete values of their keys, so what changes and changes back costs nothing, and what
`start` already says is not written again: acknowledgements in order write only the start.
"""

from collections.abc import Iterable

from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.delivery_counts import DeliveryCounts
from kafkaesque.machines.queues.offset_bits import (
    BIT_MASK,
    CHUNK_OFFSETS,
    CHUNK_SHIFT,
    Bits,
    between,
    from_bitmap,
    to_bitmap,
)
from kafkaesque.machines.queues.settled_offsets import NOTHING_DONE, ChunkBits, SettledOffsets
from kafkaesque.machines.queues.share_records import (
    AdoptedKey,
    ChunkKey,
    ChunkSaved,
    CountRun,
    CountsKey,
    CountsSaved,
    Place,
    StartKey,
    StartSaved,
    from_record,
    to_record,
)

UNKNOWN = ChunkBits(-1, -1, -1)
"""Equal to nothing."""


class SavedState:
    """The newest records that were written of one group on one partition."""

    def __init__(self, place: Place, group: str) -> None:
        self._place = place
        self._group = group
        self.start: StartSaved | None = None
        self._chunks: dict[int, ChunkBits] = {}
        self._counts: dict[int, dict[int, Bits]] = {}
        self._doubted: set[int] = set()

    def doubt(self) -> None:
        """Take nothing of what was written as true: all of it is written again, or deleted."""
        self._chunks = dict.fromkeys(self._chunks, UNKNOWN)
        self._counts = {chunk: {} for chunk in self._counts}
        self._doubted.update(self._chunks, self._counts)

    def restore(self, records: Iterable[MachineRecord]) -> SettledOffsets:
        """Take the records of this group, leave others, and return what they say."""
        out = SettledOffsets()
        for record in records:
            key, value = from_record(record)
            if (key.topic_id, key.partition) != self._place or isinstance(key, AdoptedKey):
                continue
            if key.group != self._group:
                continue
            match key, value:
                case StartKey(), StartSaved():
                    self.start = value
                case ChunkKey(), ChunkSaved():
                    self._chunks[key.chunk] = bits = ChunkBits(
                        from_bitmap(value.done),
                        from_bitmap(value.rejected),
                        from_bitmap(value.limit),
                    )
                    out.done.add(key.chunk, bits.done)
                    out.rejected.add(key.chunk, bits.rejected)
                    out.limit.add(key.chunk, bits.limit)
                case CountsKey(), CountsSaved():
                    for run in value.runs:
                        mask = between(run.first, run.first + run.length - 1)
                        out.counts.put(key.chunk, mask, run.count)
                    self._counts[key.chunk] = dict(out.counts.chunks.get(key.chunk, {}))
        assert self.start is not None, "a group has a start wherever it has state"
        for chunk, done in out.done.chunks.items():
            out.counts.clear(chunk, done)
        out.remove_below(self.start.start)
        return out

    def changes(self, start: StartSaved, now: SettledOffsets) -> list[MachineRecord]:
        """Return what the log lacks, and take it as written."""
        out: list[MachineRecord] = []
        chunks = now.touched | self._doubted
        edge, bit = start.start >> CHUNK_SHIFT, start.start & BIT_MASK
        if start != self.start:
            self.start = start
            out.append(to_record(StartKey(*self._place, self._group), start))
            for saved in (self._chunks, self._counts):
                chunks.update(chunk for chunk in saved if chunk < edge)
        for chunk in sorted(chunks):
            first = bit if chunk == edge else 0 if chunk > edge else CHUNK_OFFSETS
            self._change_chunk(chunk, now.of(chunk), first, out)
            self._change_counts(chunk, now.counts, out)
        now.touched.clear()
        self._doubted.clear()
        return out

    def _change_chunk(
        self, chunk: int, bits: ChunkBits, first: int, out: list[MachineRecord]
    ) -> None:
        before = self._chunks.get(chunk, NOTHING_DONE)
        if first < CHUNK_OFFSETS and bits == before.since(first):
            return  # what the log says below the start is void
        key = ChunkKey(*self._place, self._group, chunk)
        if bits.done:
            self._chunks[chunk] = bits
            out.append(to_record(key, ChunkSaved(*(to_bitmap(each) for each in bits))))
        elif chunk in self._chunks:
            del self._chunks[chunk]
            out.append(to_record(key, None))

    def _change_counts(self, chunk: int, counts: DeliveryCounts, out: list[MachineRecord]) -> None:
        masks = counts.chunks.get(chunk, {})
        before = self._counts.get(chunk)
        key = CountsKey(*self._place, self._group, chunk)
        if not masks:
            if before is not None:
                del self._counts[chunk]
                out.append(to_record(key, None))
            return
        if before is not None and all(
            mask & ~before.get(count, 0) == 0 for count, mask in masks.items()
        ):
            return  # the log only says more, of offsets that are done
        self._counts[chunk] = dict(masks)
        runs = (
            CountRun(run.first, run.last - run.first + 1, run.deliveries)
            for run in counts.runs(chunk, counts.counted(chunk))
        )
        out.append(to_record(key, CountsSaved(tuple(runs))))
