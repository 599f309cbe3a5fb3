"""What was known of a partition's producers at an offset, kept beside its segments.

Written so that a restart need not read the log from its start to tell a retry from a new batch.
What the state means is its owner's business; here it is bytes with a checksum. A snapshot can be
lost without harm, so a damaged one is passed over; one that is not ours, or newer than we are, is
not: that is a mistake of somebody's, and silence would hide it.

    magic "KQPS" 4 | format version 2 | crc-32c of the state 4 | length of the state 4 | state …
"""

import re
import struct
from contextlib import suppress

from kafkaesque.errors import ForeignFile, NewerFormat
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.record.crc import crc32c
from kafkaesque.types import Offset

MAGIC = b"KQPS"
FORMAT = 1

_HEADER = struct.Struct(">4sHII")
_NAME = re.compile(r"(\d{20})\.snapshot")
_UNFINISHED_SUFFIX = ".new"


def write_snapshot(disk: Disk, folder: str, offset: Offset, state: bytes) -> None:
    """Keep the state as it was before the record at `offset`; durable on return."""
    path = _path(folder, offset)
    unfinished = path + _UNFINISHED_SUFFIX
    with disk_errors(path):
        with suppress(FileNotFoundError):
            disk.remove(unfinished)
        file = disk.create(unfinished)
        try:
            file.write(0, _HEADER.pack(MAGIC, FORMAT, crc32c(state), len(state)) + state)
            disk.sync_now([file], [])
        finally:
            file.close()
        disk.rename(unfinished, path)
        disk.sync_now([], [folder])


def load_snapshot(disk: Disk, folder: str, offset: Offset) -> tuple[Offset, bytes] | None:
    """Return the newest good state at or before `offset`, and where it was taken.

    Raises NewerFormat and ForeignFile for files that this version cannot judge.
    """
    for taken_at in sorted(snapshot_offsets(disk, folder), reverse=True):
        if taken_at <= offset:
            state = _read(disk, _path(folder, taken_at))
            if state is not None:
                return taken_at, state
    return None


def snapshot_offsets(disk: Disk, folder: str) -> list[Offset]:
    """Return the offsets of the snapshots there are, good or not, oldest first."""
    with disk_errors(folder):
        matches = [_NAME.fullmatch(name) for name in disk.list(folder)]
    return [int(match[1]) for match in matches if match is not None]


def remove_snapshot(disk: Disk, folder: str, offset: Offset) -> None:
    """Remove a snapshot; the folder is still to be synced."""
    path = _path(folder, offset)
    with disk_errors(path), suppress(FileNotFoundError):
        disk.remove(path)


def drop_snapshots_beyond(disk: Disk, folder: str, offset: Offset) -> None:
    """Remove the snapshots that were taken behind `offset`, where the log now ends; durable.

    The log will grow past that place again with other records, and a snapshot of the lost ones
    would pass for one of those.
    """
    beyond = [taken_at for taken_at in snapshot_offsets(disk, folder) if taken_at > offset]
    for taken_at in beyond:
        remove_snapshot(disk, folder, taken_at)
    if beyond:
        with disk_errors(folder):
            disk.sync_now([], [folder])


def _path(folder: str, offset: Offset) -> str:
    return f"{folder}/{offset:020d}.snapshot"


def _read(disk: Disk, path: str) -> bytes | None:
    with disk_errors(path):
        file = disk.open(path)
        data = file.read(0, file.size())
        file.close()
    if len(data) < _HEADER.size:
        return None
    magic, version, crc, length = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ForeignFile(path, "it does not begin as a producer snapshot does")
    if version > FORMAT:
        raise NewerFormat(path, version, FORMAT)
    state = data[_HEADER.size :]
    return state if len(state) == length and crc32c(state) == crc else None
