"""Write a data folder in today's format, and describe the contents of a data folder.

`python -m tests.golden.write FOLDER` made `format-1`; a new format gets a new folder, and the old
ones stay as they are, because users have such folders.
"""

import sys
from pathlib import Path

from kafkaesque.broker.storage.store import Store
from kafkaesque.config import LogConfig
from kafkaesque.entry import TermOpened, Voters
from kafkaesque.errors import LogError
from kafkaesque.log.journal_records import StateSaved
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView
from tests.heard import Heard
from tests.log.logs import HandClock
from tests.log.stores import ALL_BYTES, GROUP, THEM, US, batch, opened, voters

CONFIG = LogConfig(
    segment_bytes_max=500, index_interval_bytes=100, index_sync_bytes=200, indexes_loaded_max=1
)
NODE = 7


def write(folder: Path) -> None:
    """Run briefly in an empty folder and stop as if the power had failed."""
    disk = PosixDisk(folder)
    store = _open(disk)
    log = store.create_log(GROUP, US)
    log.append([opened(log, 1)])
    _flush(store)
    log.append([batch(log, 2)])
    log.append([batch(log, 1)])
    _flush(store)
    log.append([voters(log, THEM)])
    log.append([batch(log, 3)])
    _flush(store)
    store.journal.add(StateSaved(group=GROUP, term=3, vote=2))
    log.append([opened(log, 3)])
    _flush(store)
    log.append([batch(log, 2)])
    log.append([batch(log, 1)])
    _flush(store)
    log.trim(1)
    _flush(store)
    log.close()
    store.journal.close()
    disk.close()


def dump(folder: Path) -> str:
    """Open a data folder like a node, and describe its whole contents."""
    disk = PosixDisk(folder)
    store = _open(disk)
    lines = [f"node {store.journal.node}"]
    for group, state in sorted(store.journal.groups.items()):
        lines += [
            f"group {group}",
            f"  hard state: term {state.hard_state.term}, vote {state.hard_state.vote}",
            f"  synced: {state.synced}",
            f"  is_recovering {state.is_recovering}, is_reset {state.is_reset}",
        ]
        log = store.open_log(group)
        lines += [f"  start: {log.start}", *_entries(log)]
        lines += [f"  segment {info.base} to {info.end}" for info in list(log.segments.each_info())]
        log.close()
    store.journal.close()
    disk.close()
    return "\n".join(lines) + "\n"


def _entries(log: PartitionLog) -> list[str]:
    lines = []
    for entry in log.entries(log.start.index, ALL_BYTES):
        place = f"  index {entry.first} to {entry.end} in term {entry.term}:"
        if isinstance(entry.payload, TermOpened | Voters):
            lines.append(f"{place} {entry.payload}")
            continue
        view = BatchView(entry.payload)
        lines.append(f"{place} a batch from offset {view.base_offset}")
        for record in read_records(view):
            key, value = record.key, record.value
            lines.append(f"    {record.offset} at {record.timestamp_ms}: {key!r} = {value!r}")
    return lines


def _open(disk: PosixDisk) -> Store:
    return Store.open(disk, CONFIG, HandClock(), NODE, _fail, Heard())


def _flush(store: Store) -> None:
    store.flusher.kick()


def _fail(error: LogError) -> None:
    raise error


if __name__ == "__main__":
    write(Path(sys.argv[1]))
