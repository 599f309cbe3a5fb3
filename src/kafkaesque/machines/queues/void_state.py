"""What becomes of a partition's state when its log has lost its end.

After a loss of power without sync, or after repairs, a new leader writes other records at offsets
that were already settled. What was said of those offsets is about records that no longer exist.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.offset_bits import (
    CHUNK_OFFSETS,
    CHUNK_SHIFT,
    from_bitmap,
    to_bitmap,
)
from kafkaesque.machines.queues.share_records import (
    ChunkKey,
    ChunkSaved,
    CountRun,
    CountsKey,
    CountsSaved,
    StartKey,
    StartSaved,
    from_record,
    to_record,
)
from kafkaesque.types import Offset


def without_offsets_from(end: Offset, records: Iterable[MachineRecord]) -> Iterator[MachineRecord]:
    """Yield the records to write so that nothing at or above an offset is known; often none."""
    for record in records:
        match from_record(record):
            case StartKey() as key, StartSaved() as start if start.start > end:
                yield to_record(key, replace(start, start=end))
            case ChunkKey() as key, ChunkSaved() as done:
                left = _done_below(end - (key.chunk << CHUNK_SHIFT), done)
                if left != done:
                    yield to_record(key, left if left.done else None)
            case CountsKey() as key, CountsSaved() as counts:
                runs = tuple(_runs_below(end - (key.chunk << CHUNK_SHIFT), counts.runs))
                if runs != counts.runs:
                    yield to_record(key, CountsSaved(runs) if runs else None)
            case _:
                pass


def _done_below(bit: int, done: ChunkSaved) -> ChunkSaved:
    if bit >= CHUNK_OFFSETS:
        return done
    kept = (1 << max(bit, 0)) - 1
    return ChunkSaved(
        *(to_bitmap(from_bitmap(data) & kept) for data in (done.done, done.rejected, done.limit))
    )


def _runs_below(bit: int, runs: Iterable[CountRun]) -> Iterator[CountRun]:
    for run in runs:
        if run.first + run.length <= bit:
            yield run
        elif run.first < bit:
            yield replace(run, length=bit - run.first)
