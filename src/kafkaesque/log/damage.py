"""Known damage in a log, kept in a small file beside its segments.

A replica that found damage must not lead after a restart just because the bad place has not been
read yet. The file stays with the folder: a log that is set aside takes its notes along, and the log
that replaces it starts clean.
"""

from contextlib import suppress

import msgspec

from kafkaesque.log.checked_file import CheckedFile
from kafkaesque.log.disk import Disk
from kafkaesque.types import Offset

NAME = "damage"
NOTES_MAX = 100
"""More places than this add no information."""

DAMAGED_SUFFIX = ".damaged"
"""Suffix of a file set aside because it is damaged; a number precedes it."""

ASIDE_MAX = 10
"""Damaged segments kept per log when they are mended; more add no information."""

ANYWHERE: Offset = -1
"""Stands for an unknown offset: the whole log is in doubt."""

_FILE = CheckedFile(name=NAME, magic=b"KQDM", format=1)


class Damage(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A place where the disk did not return what was written."""

    offset: Offset
    """The first offset that is unreadable there."""

    reason: str


def next_serial(names: list[str]) -> int:
    """Return the number for the next file set aside in a folder with these names."""
    numbers = [name.split(".")[-2] for name in names if name.endswith(DAMAGED_SUFFIX)]
    return 1 + max((int(number) for number in numbers if number.isdigit()), default=0)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Damage, ...])


def load_damage(disk: Disk, folder: str) -> tuple[Damage, ...]:
    """Return the damage that earlier runs noted. Raises NewerFormat.

    A damaged notes file counts as damage itself: an unreadable note must not let the replica lead.
    """
    data = _FILE.load(disk, folder)
    if data is None:
        return ()
    path = f"{folder}/{NAME}"
    state = _FILE.state(path, data)
    if state is not None:
        with suppress(msgspec.MsgspecError):
            return _decoder.decode(state)
    reason = f"{path}, the list of damaged places, is itself damaged"
    return (Damage(offset=ANYWHERE, reason=reason),)


def save_damage(disk: Disk, folder: str, found: tuple[Damage, ...]) -> None:
    """Save the list of damaged places; durable on return."""
    _FILE.save(disk, folder, _encoder.encode(found))
