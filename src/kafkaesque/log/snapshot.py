"""State as of an offset, kept beside the log's segments.

With it, a restart need not read a log from its start. The state's meaning is up to its owner; here
it is bytes with a checksum. A lost snapshot does no harm, so a damaged one is skipped; a foreign or
newer one is an error, because silence would hide an operator's mistake.

    magic 4 | format version 2 | crc-32c of the state 4 | length of the state 4 | state …
"""

import re
import struct
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from msgspec import Struct

from kafkaesque.errors import NewerFormat
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors, read_if_readable
from kafkaesque.record.crc import crc32c_on
from kafkaesque.slices import Sliced, whole
from kafkaesque.types import Buffer, Offset

FORMAT = 1

_HEADER = struct.Struct(">4sHII")
HEADER_BYTES = _HEADER.size
_UNFINISHED_SUFFIX = ".new"
_PIECE_BYTES = 1 << 20
"""Bytes read and checked at a time: well below a millisecond."""


class SnapshotKind(Struct, frozen=True, kw_only=True):
    """Whose state it is; several kinds may share a folder."""

    magic: bytes
    suffix: str
    name: str


PRODUCERS = SnapshotKind(magic=b"KQPS", suffix="snapshot", name="producer snapshot")
MACHINE = SnapshotKind(magic=b"KQMS", suffix="machine", name="machine snapshot")
KINDS = (PRODUCERS, MACHINE)


class SnapshotFile:
    """A snapshot being written: `with` abandons it unless it was finished."""

    def __init__(self, disk: Disk, folder: str, offset: Offset, kind: SnapshotKind) -> None:
        self._disk = disk
        self._folder = folder
        self._kind = kind
        self._path = path_of(folder, offset, kind)
        self._size = 0
        self._crc = 0
        with disk_errors(self._path), suppress(FileNotFoundError):
            disk.remove(self._path + _UNFINISHED_SUFFIX)
        self._is_finished = False
        with disk_errors(self._path):
            self._file = disk.create(self._path + _UNFINISHED_SUFFIX)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_finished:
            self._file.close()
            if isinstance(error, Exception):  # not where the process has lost its disk
                with suppress(OSError):  # otherwise the next one removes it
                    self._disk.remove(self._path + _UNFINISHED_SUFFIX)

    def append(self, data: Buffer) -> None:
        """Append bytes to the state."""
        with disk_errors(self._path):
            self._file.write(HEADER_BYTES + self._size, data)
        self._size += len(data)
        self._crc = crc32c_on(self._crc, data)

    def finish(self, done: Callable[[OSError | None], None]) -> None:
        """Rename it into place once it is durable; `done` gets the result later."""
        self._write_head()
        put_in_place(self._disk, self._file, self._path, done)

    def finish_now(self) -> None:
        """Rename it into place; durable on return."""
        self._write_head()
        with disk_errors(self._path):
            try:
                self._disk.sync_now([self._file], [])
            finally:
                self._file.close()
            self._disk.rename(self._path + _UNFINISHED_SUFFIX, self._path)
            self._disk.sync_now([], [self._folder])

    def _write_head(self) -> None:
        with disk_errors(self._path):
            self._file.write(0, head_of(self._kind, self._size, self._crc))
        self._is_finished = True


def put_in_place(disk: Disk, file: File, path: str, done: Callable[[OSError | None], None]) -> None:
    """Close a file and rename it once it is durable; `done` gets the result when that is, too."""

    def synced(error: OSError | None) -> None:
        file.close()
        if error is None:
            try:
                disk.rename(file.path, path)
            except OSError as failure:
                error = failure
        if error is None:
            disk.sync([], [path.rpartition("/")[0]], done)
        else:
            done(error)

    disk.sync([file], [], synced)


def write(disk: Disk, folder: str, offset: Offset, state: bytes, kind: SnapshotKind) -> None:
    """Save the state as it was before the record at `offset`; durable on return."""
    with SnapshotFile(disk, folder, offset, kind) as file:
        file.append(state)
        file.finish_now()


def begin_write(
    disk: Disk,
    folder: str,
    offset: Offset,
    state: bytes,
    kind: SnapshotKind,
    done: Callable[[OSError | None], None],
) -> None:
    """Do as `write` does, without waiting for the disk; `done` gets the result later."""
    with SnapshotFile(disk, folder, offset, kind) as file:
        file.append(state)
        file.finish(done)


def load(
    disk: Disk, folder: str, offset: Offset, kind: SnapshotKind
) -> tuple[Offset, bytes | bytearray] | None:
    """Return the newest good state at or before `offset`, and where it was taken.

    Raises NewerFormat for files of a newer format.
    """
    return whole(loading(disk, folder, offset, kind))


def loading(
    disk: Disk, folder: str, offset: Offset, kind: SnapshotKind
) -> Sliced[tuple[Offset, bytes | bytearray] | None]:
    """Do as `load` does, in slices."""
    for taken_at in sorted(offsets(disk, folder, kind), reverse=True):
        if taken_at <= offset:
            state = yield from _reading(disk, path_of(folder, taken_at, kind), kind)
            if state is not None:
                return taken_at, state
    return None


def offsets(disk: Disk, folder: str, kind: SnapshotKind) -> list[Offset]:
    """Return the offsets of all snapshots, good or not, oldest first."""
    name_of = re.compile(rf"(\d{{20}})\.{kind.suffix}")
    with disk_errors(folder):
        matches = [name_of.fullmatch(name) for name in disk.list(folder)]
    return [int(match[1]) for match in matches if match is not None]


def remove(disk: Disk, folder: str, offset: Offset, kind: SnapshotKind) -> None:
    """Remove a snapshot; the caller syncs the folder."""
    path = path_of(folder, offset, kind)
    with disk_errors(path), suppress(FileNotFoundError):
        disk.remove(path)


def drop_beyond(disk: Disk, folder: str, offset: Offset) -> None:
    """Remove the snapshots taken after `offset`, where the log now ends; durable.

    The log will grow past that offset again with other records, and a snapshot of the lost ones
    would pass for one of those.
    """
    beyond = [(at, kind) for kind in KINDS for at in offsets(disk, folder, kind) if at > offset]
    for taken_at, kind in beyond:
        remove(disk, folder, taken_at, kind)
    if beyond:
        with disk_errors(folder):
            disk.sync_now([], [folder])


def path_of(folder: str, offset: Offset, kind: SnapshotKind) -> str:
    """Return a snapshot's path."""
    return f"{folder}/{offset:020d}.{kind.suffix}"


def head_of(kind: SnapshotKind, size: int, crc: int) -> bytes:
    """Return the header of a state of this size and checksum."""
    return _HEADER.pack(kind.magic, FORMAT, crc, size)


def read_head(file: File, path: str, kind: SnapshotKind) -> tuple[int, int] | None:
    """Return the state's size and checksum from the file's header; None if that is damaged.

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


def _reading(disk: Disk, path: str, kind: SnapshotKind) -> Sliced[bytes | bytearray | None]:
    with disk_errors(path):
        file = disk.open(path)
        try:
            head = read_head(file, path, kind)
            size = file.size() - HEADER_BYTES
            if head is None or head[0] != size:
                return None
            state, crc, end = bytearray(size), 0, 0
            while end < size:
                piece = read_if_readable(file, HEADER_BYTES + end, min(size - end, _PIECE_BYTES))
                if not piece:
                    return None
                crc = crc32c_on(crc, piece)
                state[end : end + len(piece)] = piece
                end += len(piece)
                yield
        finally:
            file.close()
    return state if head[1] == crc else None
