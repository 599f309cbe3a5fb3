"""How much of the bare speed of `os.write` does the append path keep?

It measures the whole path of a producer's batch at its leader: parse the header, verify the
checksum, stamp offset and term, write. The reference writes the same bytes to its own file. Neither
side syncs. Both take turns; the best round of each counts, because disturbances only slow down.
Prints one JSON line per batch size.
"""

import json
import os
import tempfile
import time
from pathlib import Path

from kafkaesque.clock import SystemClock
from kafkaesque.config import LogConfig
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.log.segments import Segments
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView, stamp

ROUNDS = 7
BYTES_PER_ROUND = 160 << 20
SIZES = {"append-16k": 16 << 10, "append-1m": 1 << 20}


def main() -> None:
    """Measure and print."""
    for figure, size in SIZES.items():
        batch = a_batch(size)
        appends = BYTES_PER_ROUND // size
        bare = ours = float("inf")
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as root:
                bare = min(bare, write_bare(Path(root), batch, appends))
            with tempfile.TemporaryDirectory() as root:
                ours = min(ours, append(Path(root), batch, appends))
        line = {
            "figure": figure,
            "measured": round(ours / appends * 1e6, 2),
            "unit": "us per batch",
            "ratio": round(bare / ours, 3),
            "bare": round(bare / appends * 1e6, 2),
        }
        print(json.dumps(line))


def a_batch(size: int) -> bytearray:
    """Return a batch of about `size` bytes, header and all."""
    record = Record(offset=0, timestamp_ms=1_700_000_000_000, key=None, value=bytes(size - 80))
    return build_batch([record], base_offset=0, term=1)


def write_bare(root: Path, batch: bytearray, appends: int) -> float:
    """Write the batches directly to the kernel."""
    descriptor = os.open(root / "bare", os.O_RDWR | os.O_CREAT)
    start = time.perf_counter()
    for _ in range(appends):
        os.write(descriptor, batch)
    taken = time.perf_counter() - start
    os.close(descriptor)
    return taken


def append(root: Path, batch: bytearray, appends: int) -> float:
    """Append the batches to the log."""
    disk = PosixDisk(root)
    log = Segments.create(disk, "orders", LogConfig(), SystemClock(), 0)
    start = time.perf_counter()
    for offset in range(appends):
        BatchView(batch).check()
        stamp(batch, offset, 1)
        log.append(batch)
    taken = time.perf_counter() - start
    disk.close()
    return taken


if __name__ == "__main__":
    main()
