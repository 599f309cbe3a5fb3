"""What is known to be damaged in a log, kept in a small file beside its segments.

A replica that has found damage must not lead again after a restart, when nobody has read the bad
place yet. The file goes with the folder: a log that is put aside takes its notes along, and the one
that begins in its place is whole.
"""

from contextlib import suppress

import msgspec

from kafkaesque.log.checked_file import CheckedFile
from kafkaesque.log.disk import Disk
from kafkaesque.types import Offset

NAME = "damage"
NOTES_MAX = 100
"""More places than this say nothing new."""

DAMAGED_SUFFIX = ".damaged"
"""Ends the name of a file that was put aside because it is damaged; a number precedes it."""

ASIDE_MAX = 10
"""Damaged segments of one log that are kept when they are mended; more say nothing new."""

ANYWHERE: Offset = -1
"""Stands for the offset where it is not known: the whole log is in doubt."""

_FILE = CheckedFile(name=NAME, magic=b"KQDM", format=1)


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
    data = _FILE.load(disk, folder)
    if data is None:
        return ()
    path = f"{folder}/{NAME}"
    state = _FILE.state(path, data)
    if state is not None:
        with suppress(msgspec.MsgspecError):
            return _decoder.decode(state)
    reason = f"{path}, which names the damaged places, is damaged itself"
    return (Damage(offset=ANYWHERE, reason=reason),)


def save_damage(disk: Disk, folder: str, found: tuple[Damage, ...]) -> None:
    """Write down what is damaged; durable on return."""
    _FILE.save(disk, folder, _encoder.encode(found))
