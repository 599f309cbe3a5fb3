"""The state of a partition's producers at an offset, kept beside its segments.

With it, a restart need not read the log from its start to distinguish a retry from a new batch.
These are snapshots (`log/snapshot.py`) of the kind `PRODUCERS`.
"""

from collections.abc import Callable

from kafkaesque.log import snapshot
from kafkaesque.log.disk import Disk
from kafkaesque.log.snapshot import PRODUCERS
from kafkaesque.types import Offset


def write_snapshot(disk: Disk, folder: str, offset: Offset, state: bytes) -> None:
    """Save the state as it was before the record at `offset`; durable on return."""
    snapshot.write(disk, folder, offset, state, PRODUCERS)


def begin_snapshot(
    disk: Disk,
    folder: str,
    offset: Offset,
    state: bytes,
    done: Callable[[OSError | None], None],
) -> None:
    """Do as `write_snapshot` does, without waiting for the disk; `done` gets the result."""
    snapshot.begin_write(disk, folder, offset, state, PRODUCERS, done)


def load_snapshot(
    disk: Disk, folder: str, offset: Offset
) -> tuple[Offset, bytes | bytearray] | None:
    """Return the newest good state at or before `offset`, and where it was taken.

    Raises NewerFormat for files of a newer format.
    """
    return snapshot.load(disk, folder, offset, PRODUCERS)


def snapshot_offsets(disk: Disk, folder: str) -> list[Offset]:
    """Return the offsets of all snapshots, good or not, oldest first."""
    return snapshot.offsets(disk, folder, PRODUCERS)


def remove_snapshot(disk: Disk, folder: str, offset: Offset) -> None:
    """Remove a snapshot; the caller syncs the folder."""
    snapshot.remove(disk, folder, offset, PRODUCERS)
