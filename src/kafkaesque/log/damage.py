"""What is known to be damaged in a log, kept in a small file beside its segments.

A replica that has found damage must not lead again after a restart, when nobody has read the bad
place yet. The file goes with the folder: a log that is put aside takes its notes along, and the one
that begins in its place is whole.
"""

import struct
from contextlib import suppress

import msgspec

from kafkaesque.errors import NewerFormat
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.record.crc import crc32c
from kafkaesque.types import Offset

FORMAT = 1
NAME = "damage"
NOTES_MAX = 100
"""More places than this say nothing new."""

DAMAGED_SUFFIX = ".damaged"
"""Ends the name of a file that was put aside because it is damaged; a number precedes it."""

ASIDE_MAX = 10
"""Damaged segments of one log that are kept when they are mended; more say nothing new."""

_NEW_NAME = "damage.new"
_MAGIC = b"KQDM"
_HEADER = struct.Struct(">4sHII")


class Damage(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A place where the disk did not give back what was written to it."""

    offset: Offset
    """The first offset that cannot be read there."""

    reason: str


def next_serial(names: list[str]) -> int:
    """Return the number for what is put aside next in a folder with these names."""
    numbers = [name.split(".")[-2] for name in names if name.endswith(DAMAGED_SUFFIX)]
    return 1 + max((int(number) for number in numbers if number.isdigit()), default=0)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Damage, ...])


def load_damage(disk: Disk, folder: str) -> tuple[Damage, ...]:
    """Return what earlier runs noted; a file that is damaged itself is a note. Raises NewerFormat.

    A note that cannot be read must not let a replica lead that was not to.
    """
    path = f"{folder}/{NAME}"
    with disk_errors(path):
        if NAME not in disk.list(folder):
            return ()
        file = disk.open(path)
        data = file.read(0, file.size())
        file.close()
    state = data[_HEADER.size :]
    if len(data) >= _HEADER.size:
        magic, version, crc, length = _HEADER.unpack_from(data)
        if magic == _MAGIC and version > FORMAT:
            raise NewerFormat(path, version, FORMAT)
        if magic == _MAGIC and len(state) == length and crc32c(state) == crc:
            with suppress(msgspec.MsgspecError):
                return _decoder.decode(state)
    return (Damage(offset=0, reason=f"{path}, which names the damaged places, is damaged itself"),)


def save_damage(disk: Disk, folder: str, found: tuple[Damage, ...]) -> None:
    """Write down what is damaged; durable on return."""
    state = _encoder.encode(found)
    new = f"{folder}/{_NEW_NAME}"
    with disk_errors(new):
        with suppress(FileNotFoundError):
            disk.remove(new)
        file = disk.create(new)
        try:
            file.write(0, _HEADER.pack(_MAGIC, FORMAT, crc32c(state), len(state)) + state)
            disk.sync_now([file], [])
        finally:
            file.close()
        disk.rename(new, f"{folder}/{NAME}")
        disk.sync_now([], [folder])
