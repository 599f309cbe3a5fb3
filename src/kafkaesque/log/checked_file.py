"""Small files replaced as a whole: a header with magic, format and checksum, then the state.

file = magic 4 | format 2 | crc32c of the state 4 | length of the state 4 | state
"""

import struct
from contextlib import suppress

from msgspec import Struct

from kafkaesque.errors import NewerFormat
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors, read_if_readable
from kafkaesque.record.crc import crc32c

_HEADER = struct.Struct(">4sHII")


class CheckedFile(Struct, frozen=True, kw_only=True):
    """One kind of checked file; each folder holds at most one."""

    name: str
    magic: bytes
    format: int

    @property
    def new_name(self) -> str:
        """The name of the new file until it is durable."""
        return f"{self.name}.new"

    def load(self, disk: Disk, folder: str) -> bytes | None:
        """Return the file, None if there is none."""
        path = f"{folder}/{self.name}"
        with disk_errors(path):
            if self.name not in disk.list(folder):
                return None
            file = disk.open(path)
            try:
                return read_if_readable(file, 0, file.size())
            finally:
                file.close()

    def state(self, path: str, data: bytes) -> bytes | None:
        """Return the state in the file, or None if it is damaged; raises NewerFormat."""
        if len(data) < _HEADER.size:
            return None
        magic, version, crc, length = _HEADER.unpack_from(data)
        if magic != self.magic:
            return None
        if version > self.format:
            raise NewerFormat(path, version, self.format)
        state = data[_HEADER.size :]
        return state if len(state) == length and crc32c(state) == crc else None

    def write_new(self, disk: Disk, folder: str, state: bytes) -> File:
        """Write the new file under its temporary name; the caller syncs and renames it."""
        path = f"{folder}/{self.new_name}"
        with disk_errors(path):
            with suppress(FileNotFoundError):
                disk.remove(path)
            file = disk.create(path)
            try:
                header = _HEADER.pack(self.magic, self.format, crc32c(state), len(state))
                file.write(0, header + state)
            except OSError:
                file.close()
                raise
        return file

    def save(self, disk: Disk, folder: str, state: bytes) -> None:
        """Replace the file; durable on return."""
        file = self.write_new(disk, folder, state)
        with disk_errors(file.path):
            try:
                disk.sync_now([file], [])
            finally:
                file.close()
            disk.rename(file.path, f"{folder}/{self.name}")
            disk.sync_now([], [folder])
