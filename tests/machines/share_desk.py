"""What tests of share groups write in short, and a reader of what the log knows."""

from collections.abc import Iterable, Iterator

from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.offset_bits import CHUNK_SHIFT, from_bitmap, runs
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_records import (
    ChunkSaved,
    CountsSaved,
    Place,
    StartSaved,
    from_record,
)
from kafkaesque.machines.queues.share_values import Ack, AckBatch, ShareLimits

PLACE: Place = (bytes(range(16)), 2)
GROUP = "g"
LIMITS = ShareLimits(lock_ms=1_000, delivery_max=3, window=100, locks_max=60)


def partition(first: int = 0, limits: ShareLimits = LIMITS) -> SharePartition:
    return SharePartition(PLACE, GROUP, first, limits, opened_ms=7)


def ack(first: int, last: int, *kinds: Ack) -> AckBatch:
    return AckBatch(first, last, kinds)


def accept(first: int, last: int | None = None) -> AckBatch:
    return AckBatch(first, first if last is None else last, (Ack.ACCEPT,))


class Store:
    """The newest record of each key, as the log has them."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}

    def write(self, records: Iterable[MachineRecord]) -> int:
        """Take records; returns how many."""
        count = 0
        for key, value in records:
            count += 1
            if value is None:
                del self.values[key]  # what was never written is never deleted
            else:
                self.values[key] = value
        return count

    def records(self) -> list[MachineRecord]:
        return [MachineRecord(key, value) for key, value in self.values.items()]

    def _values(self) -> Iterator[tuple[int, object]]:
        for record in self.records():
            key, value = from_record(record)
            yield getattr(key, "chunk", 0) << CHUNK_SHIFT, value

    def start(self) -> StartSaved:
        (value,) = [value for _, value in self._values() if isinstance(value, StartSaved)]
        return value

    def done(self) -> dict[int, str]:
        """Return what is done from the start on, and why."""
        start = self.start().start
        out: dict[int, str] = {}
        for base, value in self._values():
            if isinstance(value, ChunkSaved):
                for name, data in (
                    ("", value.done),
                    ("rejected", value.rejected),
                    ("limit", value.limit),
                ):
                    for first, last in runs(from_bitmap(data)):
                        out |= {base + n: name for n in range(first, last + 1) if base + n >= start}
        return out

    def counts(self) -> dict[int, int]:
        """Return how often what is not done was delivered, from the start on."""
        start, done = self.start().start, self.done()
        out: dict[int, int] = {}
        for base, value in self._values():
            if isinstance(value, CountsSaved):
                for run in value.runs:
                    first = base + run.first
                    out |= dict.fromkeys(range(first, first + run.length), run.count)
        return {n: count for n, count in out.items() if n >= start and n not in done}
