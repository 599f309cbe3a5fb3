"""Small logs for tests: tiny limits, so that a few batches roll, index and overflow."""

import random
from collections.abc import Sequence

from kafkaesque.config import LogConfig
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView, split_batches
from kafkaesque.sim.disk import DiskFaults, SimDisk
from kafkaesque.types import Offset, Term

FOLDER = "orders"
START_MS = 1_700_000_000_000
TINY = LogConfig(
    segment_bytes_max=1000, index_interval_bytes=200, index_sync_bytes=500, indexes_loaded_max=2
)


class HandClock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.ms = START_MS
        self.ahead_ms = 0
        """How far the wall clock is ahead of the true time."""

    def now_ms(self) -> int:
        return self.ms + self.ahead_ms

    def monotonic_ms(self) -> int:
        return self.ms


def a_disk(seed: int = 1, *, page_bytes: int = 64) -> SimDisk:
    return SimDisk(random.Random(seed), faults=DiskFaults(page_bytes=page_bytes))


def a_batch(
    base: Offset, count: int = 2, *, term: Term = 1, at_ms: int | None = None, fill: int = 20
) -> BatchView:
    timestamp_ms = START_MS + base if at_ms is None else at_ms
    records = [
        Record(
            offset=offset,
            timestamp_ms=timestamp_ms,
            key=b"key-%d" % offset,
            value=b"%d of term %d " % (offset, term) + b"." * fill,
        )
        for offset in range(base, base + count)
    ]
    return BatchView(build_batch(records, base_offset=base, term=term))


def a_log(
    disk: SimDisk | None = None,
    *,
    batches: int = 0,
    start: Offset = 0,
    config: LogConfig = TINY,
    clock: HandClock | None = None,
) -> Segments:
    log = Segments.create(disk or a_disk(), FOLDER, config, clock or HandClock(), start)
    append(log, batches)
    return log


def append(log: Segments, count: int, *, term: Term = 1) -> None:
    for _ in range(count):
        log.append(a_batch(log.end_offset, term=term).data)


def sync(log: Segments) -> SyncedPoint:
    point = log.point()
    log.disk.sync_now(*log.take_dirty())
    log.synced()
    return point


def recover(
    disk: SimDisk,
    synced: SyncedPoint | None,
    *,
    start: Offset = 0,
    config: LogConfig = TINY,
    term: Term = 1,
) -> Segments:
    return Segments.recover(
        disk,
        FOLDER,
        config,
        HandClock(),
        start_offset=start,
        synced=synced,
        term_at=lambda _: term,
    )


def contents(log: Segments) -> list[bytes]:
    """All batches of the log, read like a consumer, from its first offset to its end."""
    found: list[bytes] = []
    offset = log.first_base
    while offset < log.end_offset:
        data = log.read(offset, 1)
        if not data:
            break
        view = BatchView(data)
        assert view.end_offset > offset
        found.append(bytes(view.data))
        offset = view.end_offset
    return found


def bases(data: memoryview | bytes) -> list[Offset]:
    return [view.base_offset for view in split_batches(data)]


def whole(views: Sequence[BatchView]) -> list[bytes]:
    return [bytes(view.data) for view in views]


def path(base: Offset, suffix: str = ".log") -> str:
    return f"{FOLDER}/{base:020d}{suffix}"


def overwrite(disk: SimDisk, at: str, position: int, data: bytes) -> None:
    """Change a file behind the log's back, durably."""
    file = disk.open(at)
    file.write(position, data)
    disk.sync_now([file], [])
    file.close()
