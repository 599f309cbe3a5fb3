"""Snapshots sent from one broker to another: read and written in pieces.

An incoming snapshot is a file `<offset>.<kind>.part` until it is complete, its checksum is right
and it is durable; only then it gets its name. Leftovers of an interrupted one are removed when the
log is opened, or when the next one starts.
"""

from collections.abc import Callable
from contextlib import suppress

from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors, read_if_readable
from kafkaesque.log.snapshot import (
    HEADER_BYTES,
    SnapshotKind,
    head_of,
    path_of,
    put_in_place,
    read_head,
)
from kafkaesque.record.crc import crc32c_on
from kafkaesque.types import Buffer, Offset

_PART_SUFFIX = ".part"
_CHECK_BYTES = 1 << 20


def size_and_crc(
    disk: Disk, folder: str, offset: Offset, kind: SnapshotKind
) -> tuple[int, int] | None:
    """Return the length and checksum of a snapshot's state, after verifying the checksum.

    None if there is no such snapshot, or a damaged one. Raises NewerFormat.
    """
    path = path_of(folder, offset, kind)
    with disk_errors(path):
        try:
            file = disk.open(path)
        except FileNotFoundError:
            return None
        try:
            head = read_head(file, path, kind)
            if head is None:
                return None
            length, crc = head
            found, position = 0, 0
            while position < length:  # terminates: an empty read means the file is too short
                wanted = min(_CHECK_BYTES, length - position)
                data = read_if_readable(file, HEADER_BYTES + position, wanted)
                if not data:
                    return None
                found = crc32c_on(found, data)
                position += len(data)
            return (length, crc) if found == crc else None
        finally:
            file.close()


def read_piece(
    disk: Disk, folder: str, offset: Offset, kind: SnapshotKind, position: int, bytes_max: int
) -> bytes | None:
    """Return some bytes of a snapshot's state; None if the snapshot is gone.

    If a sector cannot be read, returns nothing, and the receiver is offered another snapshot.
    """
    path = path_of(folder, offset, kind)
    with disk_errors(path):
        try:
            file = disk.open(path)
        except FileNotFoundError:
            return None
        try:
            return read_if_readable(file, HEADER_BYTES + position, bytes_max)
        finally:
            file.close()


def remove_parts(disk: Disk, folder: str) -> None:
    """Remove leftovers of incomplete snapshots."""
    with disk_errors(folder):
        for name in disk.list(folder):
            if name.endswith(_PART_SUFFIX):
                disk.remove(f"{folder}/{name}")


class IncomingSnapshot:
    """One snapshot being written piece by piece; raises DiskFull and DiskFailed."""

    def __init__(
        self, disk: Disk, folder: str, offset: Offset, kind: SnapshotKind, size: int, crc: int
    ) -> None:
        self.offset = offset
        self.position = 0
        """How many bytes of the state have arrived."""
        self._disk = disk
        self._folder = folder
        self._kind = kind
        self._size = size
        self._crc = crc
        self._found = 0
        self._path = path_of(folder, offset, kind)
        self._file: File | None = None

    def begin(self) -> None:
        """Create the file, with a header for the state to follow."""
        remove_parts(self._disk, self._folder)
        with disk_errors(self._path):
            self._file = self._disk.create(self._path + _PART_SUFFIX)
            self._file.write(0, head_of(self._kind, self._size, self._crc))

    def write(self, data: Buffer) -> None:
        """Append the next bytes."""
        assert self._file is not None, "it was begun"
        with disk_errors(self._path):
            self._file.write(HEADER_BYTES + self.position, data)
        self._found = crc32c_on(self._found, data)
        self.position += len(data)

    @property
    def is_complete(self) -> bool:
        """Whether all bytes have arrived, right or wrong."""
        return self.position >= self._size

    @property
    def is_right(self) -> bool:
        """Whether the bytes match the offered size and checksum."""
        return self.position == self._size and self._found == self._crc

    def finish(self, done: Callable[[OSError | None], None]) -> None:
        """Make it durable under its name; `done` gets the result later."""
        assert self._file is not None, "it was begun"
        assert self.is_right, "only what was offered gets a name"
        put_in_place(self._disk, self._file, self._path, done)

    @property
    def is_there(self) -> bool:
        """Whether the finished snapshot still has its name: a cut of the log removes it."""
        return self._path.rpartition("/")[2] in self._disk.list(self._folder)

    def abandon(self) -> None:
        """Abandon it."""
        if self._file is not None:
            self._file.close()
            with disk_errors(self._path), suppress(FileNotFoundError):
                self._disk.remove(self._path + _PART_SUFFIX)
