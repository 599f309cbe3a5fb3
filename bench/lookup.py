"""Does finding a record cost the same in a log of 1,000 segments as in a log of one?

It counts disk accesses, which do not depend on the machine: reads and bytes per lookup, by offset
and by time. *Warm* means that the segment's indexes are in memory, *cold* that they are not. The
first lookup by time after a start also reads the end of every time index, once; that is shown
separately. Prints one JSON line per figure, 1,000 segments against one.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kafkaesque.clock import SystemClock
from kafkaesque.config import LogConfig
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.log.segments import Segments
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.types import Offset

CONFIG = LogConfig(segment_bytes_max=64 << 10)
BATCH_BYTES = 1 << 10
START_MS = 1_700_000_000_000
FETCH_BYTES = 4 << 10
LOOKUPS = 200
REPEATED = ("by_offset", "by_time", "by_offset_cold")
"""The cost of every lookup; the first by time is a start-up cost and shown separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Disk accesses per lookup."""

    reads: float
    bytes: float


def main() -> None:
    """Measure both logs and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=1000)
    count = parser.parse_args().segments
    one, many = measure(1), measure(count)
    for unit in ("reads", "bytes"):
        ratios = {name: getattr(many[name], unit) / getattr(one[name], unit) for name in many}
        figure = {
            "figure": f"lookup-{unit}",
            "measured": round(max(ratios[name] for name in REPEATED), 3),
            "unit": f"times as many {unit}",
            "each": {name: round(getattr(many[name], unit), 2) for name in many},
            "ratios": {name: round(ratio, 3) for name, ratio in ratios.items()},
        }
        print(json.dumps(figure))


def measure(segments: int) -> dict[str, Cost]:
    """Build a log with this many closed segments and do lookups in it."""
    with tempfile.TemporaryDirectory() as root:
        disk = PosixDisk(Path(root))
        log = build(disk, segments)
        log.close()
        chance = random.Random(1)
        # The middle of the log, and the same positions within a segment for any number of them.
        middle = list(log.each_info())[segments // 2]
        offsets = [chance.randrange(middle.base, middle.end) for _ in range(LOOKUPS)]
        costs = {
            "by_offset": warm(
                disk, log, lambda log, offset: log.read(offset, FETCH_BYTES), offsets
            ),
            "by_time": warm(disk, log, lambda log, at: log.find_time(START_MS + at), offsets),
            "by_offset_cold": cold(
                disk, log, lambda log, offset: log.read(offset, FETCH_BYTES), offsets
            ),
            "by_time_first": cold(
                disk, log, lambda log, at: log.find_time(START_MS + at), offsets[:5]
            ),
        }
        disk.close()
    return costs


def build(disk: PosixDisk, segments: int) -> Segments:
    """Fill segments with batches of one record, whose offset is also its time."""
    log = Segments.create(disk, "orders", CONFIG, SystemClock(), 0)
    while len(list(log.each_info())) <= segments:
        for _ in range(CONFIG.segment_bytes_max // BATCH_BYTES):
            offset = log.end_offset
            record = Record(
                offset=offset, timestamp_ms=START_MS + offset, key=None, value=bytes(BATCH_BYTES)
            )
            log.append(build_batch([record], base_offset=offset, term=1))
    return log


LookUp = Callable[[Segments, Offset], object]


def warm(disk: PosixDisk, log: Segments, look_up: LookUp, offsets: list[Offset]) -> Cost:
    """Count with the indexes in memory."""
    log = reopened(disk, log)
    look_up(log, offsets[0])
    return counted(disk, lambda: [look_up(log, offset) for offset in offsets], len(offsets))


def cold(disk: PosixDisk, log: Segments, look_up: LookUp, offsets: list[Offset]) -> Cost:
    """Count with nothing in memory."""
    costs = []
    for offset in offsets:
        log = reopened(disk, log)
        costs.append(counted(disk, partial(look_up, log, offset), 1))
    return Cost(
        reads=sum(cost.reads for cost in costs) / len(costs),
        bytes=sum(cost.bytes for cost in costs) / len(costs),
    )


def reopened(disk: PosixDisk, log: Segments) -> Segments:
    """Reopen the log as after a restart."""
    return Segments.recover(
        disk,
        log.folder,
        CONFIG,
        SystemClock(),
        start_offset=0,
        synced=log.point(),
        term_at=lambda _: 1,
    )


def counted(disk: PosixDisk, work: Callable[[], object], lookups: int) -> Cost:
    """Run the lookups and return the cost of each."""
    reads, bytes_read = disk.reads, disk.bytes_read
    work()
    return Cost(
        reads=(disk.reads - reads) / lookups, bytes=(disk.bytes_read - bytes_read) / lookups
    )


if __name__ == "__main__":
    main()
