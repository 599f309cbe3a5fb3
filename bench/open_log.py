"""How long does it take to open a large log, and how much of it must be read?

Builds a log of 10 GB through the broker's own store. First it is closed cleanly, and opening is
timed. Then more is written, only part of it synced, and the process forgets everything, as a kill
does; opening must read the unsynced tail and hardly more, whatever the size of the log. The disk
counts the bytes, so that figure does not depend on the machine. Prints one JSON line each.
"""

import argparse
import json
import shutil
import struct
import tempfile
import time
from pathlib import Path

from bench.append import a_batch
from kafkaesque.broker.storage.store import Store
from kafkaesque.clock import SystemClock
from kafkaesque.config import LogConfig
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.errors import LogError
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.record.crc import crc32c
from kafkaesque.record.view import CRC_FROM, stamp
from kafkaesque.server.edge.event_log import EventLog

GROUP = "orders"
BATCH_BYTES = 1 << 20
TAIL_BATCHES = 48
SYNC_EVERY = 256
START_MS = 1_700_000_000_000
CRC_AT = 17
TIMESTAMPS_AT = 27


def main() -> None:
    """Build, open twice, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=10_000)
    batches = parser.parse_args().megabytes
    root = Path(tempfile.mkdtemp(prefix="kafkaesque-bench-"))
    try:
        build(root, batches)
        seconds, disk, store, log = opened(root)
        line = {"figure": "open-clean", "measured": round(seconds, 3), "unit": "s"}
        print(json.dumps({**line, "bytes_read": disk.bytes_read, "bytes": log.segments.size_bytes}))
        append(store, log, SYNC_EVERY, SYNC_EVERY)
        append(store, log, TAIL_BATCHES, TAIL_BATCHES + 1)
        disk.close()
        seconds, disk, _, log = opened(root)
        tail = (TAIL_BATCHES + SYNC_EVERY) * BATCH_BYTES
        unsynced = disk.bytes_read / tail
        line = {"figure": "open-crash", "measured": round(unsynced, 3), "unit": "times the tail"}
        print(json.dumps({**line, "bytes_read": disk.bytes_read, "seconds": round(seconds, 3)}))
        disk.close()
    finally:
        shutil.rmtree(root)


def build(root: Path, batches: int) -> None:
    """Write the log and stop cleanly."""
    disk = PosixDisk(root)
    store = Store.open(disk, LogConfig(), SystemClock(), 1, fail, EventLog(SystemClock()))
    log = store.create_log(GROUP, Voters(voters=(1,)))
    store.flusher.kick()
    log.append([Entry(0, 1, 1, TermOpened())])
    store.flusher.kick()
    append(store, log, batches, SYNC_EVERY)
    store.close()
    disk.close()


def append(store: Store, log: PartitionLog, batches: int, sync_every: int) -> None:
    """Append batches of 1 MB and sync after every `sync_every`."""
    batch = a_batch(BATCH_BYTES)
    for number in range(1, batches + 1):
        set_time(batch, START_MS + log.end_offset)
        stamp(batch, log.end_offset, 1)
        log.append([Entry(log.end, log.end + 1, 1, batch)])
        if number % sync_every == 0:
            store.flusher.kick()


def set_time(batch: bytearray, timestamp_ms: int) -> None:
    """Set the time of the batch's record, so that the time index grows as usual."""
    struct.pack_into(">qq", batch, TIMESTAMPS_AT, timestamp_ms, timestamp_ms)
    struct.pack_into(">I", batch, CRC_AT, crc32c(memoryview(batch)[CRC_FROM:]))


def opened(root: Path) -> tuple[float, PosixDisk, Store, PartitionLog]:
    """Open the store and the log in it, as a starting broker does."""
    disk = PosixDisk(root)
    start = time.perf_counter()
    store = Store.open(disk, LogConfig(), SystemClock(), 1, fail, EventLog(SystemClock()))
    log = store.open_log(GROUP)
    return time.perf_counter() - start, disk, store, log


def fail(error: LogError) -> None:
    """Fail: no error is expected here."""
    raise error


if __name__ == "__main__":
    main()
