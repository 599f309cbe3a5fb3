"""State as it was at an offset, kept beside the segments that it follows from.

Written so that a restart need not read a log from its start. What the state means is its owner's
business; here it is bytes with a checksum. A snapshot can be lost without harm, so a damaged one
is passed over; one that is not ours, or newer than we are, is not: that is a mistake of somebody's,
and silence would hide it.

    magic 4 | format version 2 | crc-32c of the state 4 | length of the state 4 | state …
"""

import re
import struct
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from kafkaesque.errors import NewerFormat
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors, read_if_readable
from kafkaesque.record.crc import crc32c
from kafkaesque.types import Offset

FORMAT = 1

_HEADER = struct.Struct(">4sHII")
HEADER_BYTES = _HEADER.size
_UNFINISHED_SUFFIX = ".new"


class SnapshotKind(Struct, frozen=True, kw_only=True):
    """Whose state it is; kinds lie side by side in a folder."""

    magic: bytes
    suffix: str
    name: str


PRODUCERS = SnapshotKind(magic=b"KQPS", suffix="snapshot", name="producer snapshot")
MACHINE = SnapshotKind(magic=b"KQMS", suffix="machine", name="machine snapshot")
KINDS = (PRODUCERS, MACHINE)


def write(disk: Disk, folder: str, offset: Offset, state: bytes, kind: SnapshotKind) -> None:
    """Keep the state as it was before the record at `offset`; durable on return."""
    path = path_of(folder, offset, kind)
    with disk_errors(path):
        file = _written(disk, path, state, kind)
        try:
            disk.sync_now([file], [])
        finally:
            file.close()
        disk.rename(path + _UNFINISHED_SUFFIX, path)
        disk.sync_now([], [folder])


def begin_write(
    disk: Disk,
    folder: str,
    offset: Offset,
    state: bytes,
    kind: SnapshotKind,
    done: Callable[[OSError | None], None],
) -> None:
    """Do as `write` does without waiting for the disk; `done` is told later how it went."""
    path = path_of(folder, offset, kind)
    with disk_errors(path):
        file = _written(disk, path, state, kind)

    def synced(error: OSError | None) -> None:
        file.close()
        if error is None:
            try:
                disk.rename(path + _UNFINISHED_SUFFIX, path)
            except OSError as failure:
                error = failure
        if error is None:
            disk.sync([], [folder], done)
        else:
            done(error)

    disk.sync([file], [], synced)


def load(
    disk: Disk, folder: str, offset: Offset, kind: SnapshotKind
) -> tuple[Offset, bytes] | None:
    """Return the newest good state at or before `offset`, and where it was taken.

    Raises NewerFormat for files that this version cannot judge.
    """
    for taken_at in sorted(offsets(disk, folder, kind), reverse=True):
        if taken_at <= offset:
            state = _read(disk, path_of(folder, taken_at, kind), kind)
            if state is not None:
                return taken_at, state
    return None


def offsets(disk: Disk, folder: str, kind: SnapshotKind) -> list[Offset]:
    """Return the offsets of the snapshots there are, good or not, oldest first."""
    name_of = re.compile(rf"(\d{{20}})\.{kind.suffix}")
    with disk_errors(folder):
        matches = [name_of.fullmatch(name) for name in disk.list(folder)]
    return [int(match[1]) for match in matches if match is not None]


def remove(disk: Disk, folder: str, offset: Offset, kind: SnapshotKind) -> None:
    """Remove a snapshot; the folder is still to be synced."""
    path = path_of(folder, offset, kind)
    with disk_errors(path), suppress(FileNotFoundError):
        disk.remove(path)


def drop_beyond(disk: Disk, folder: str, offset: Offset) -> None:
    """Remove the snapshots that were taken behind `offset`, where the log now ends; durable.

    The log will grow past that place again with other records, and a snapshot of the lost ones
    would pass for one of those.
    """
    beyond = [(at, kind) for kind in KINDS for at in offsets(disk, folder, kind) if at > offset]
    for taken_at, kind in beyond:
        remove(disk, folder, taken_at, kind)
    if beyond:
        with disk_errors(folder):
            disk.sync_now([], [folder])


def path_of(folder: str, offset: Offset, kind: SnapshotKind) -> str:
    """Return where a snapshot lies."""
    return f"{folder}/{offset:020d}.{kind.suffix}"


def head_of(kind: SnapshotKind, size: int, crc: int) -> bytes:
    """Return what precedes a state of this size and checksum."""
    return _HEADER.pack(kind.magic, FORMAT, crc, size)


def read_head(file: File, path: str, kind: SnapshotKind) -> tuple[int, int] | None:
    """Return size and checksum of the state as the file says; None if its head is damaged.

    Raises NewerFormat.
    """
    head = read_if_readable(file, 0, _HEADER.size)
    if len(head) < _HEADER.size:
        return None
    magic, version, crc, length = _HEADER.unpack(head)
    if magic != kind.magic:
        return None
    if version > FORMAT:
        raise NewerFormat(path, version, FORMAT)
    return length, crc


def _written(disk: Disk, path: str, state: bytes, kind: SnapshotKind) -> File:
    unfinished = path + _UNFINISHED_SUFFIX
    with suppress(FileNotFoundError):
        disk.remove(unfinished)
    file = disk.create(unfinished)
    try:
        file.write(0, head_of(kind, len(state), crc32c(state)) + state)
    except OSError:
        file.close()
        raise
    return file


def _read(disk: Disk, path: str, kind: SnapshotKind) -> bytes | None:
    with disk_errors(path):
        file = disk.open(path)
        try:
            head = read_head(file, path, kind)
            state = read_if_readable(file, _HEADER.size, file.size())
        finally:
            file.close()
    return state if head == (len(state), crc32c(state)) else None
