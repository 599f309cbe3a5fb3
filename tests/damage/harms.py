"""Ways in which files stop being what was written: the rows of the damage matrix.

Each harm changes the files of one log on a simulated disk, behind the broker's back. The victim is
a closed segment in the middle of the log, unless a row says otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kafkaesque.log.segment import INDEX_SUFFIXES, LOG_SUFFIX
from kafkaesque.record.view import HEADER, split_batches
from kafkaesque.sim.disk import SECTOR_BYTES, SimDisk
from kafkaesque.types import GroupId

PAGE_BYTES = 128
"""A small page, so that several fit into a small segment."""

FIELD_SIZES = {
    "base offset": 8,
    "length": 4,
    "term": 4,
    "magic": 1,
    "checksum": 4,
    "attributes": 2,
    "last offset delta": 4,
    "base timestamp": 8,
    "max timestamp": 8,
    "producer id": 8,
    "producer epoch": 2,
    "base sequence": 4,
    "record count": 4,
}
"""The fields of a batch's header, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of one log."""

    disk: SimDisk
    group: GroupId

    def segments(self) -> list[str]:
        """Return the paths of the segments, oldest first."""
        names = [name for name in self.disk.list(self.group) if name.endswith(LOG_SUFFIX)]
        return [f"{self.group}/{name}" for name in names]

    @property
    def victim(self) -> str:
        """A closed segment that is neither first nor last."""
        return self.segments()[2]

    @property
    def active(self) -> str:
        """The active segment; the last one with contents."""
        return [path for path in self.segments() if self.read(path)][-1]

    def read(self, path: str) -> bytes:
        """Return the contents of a file."""
        file = self.disk.open(path)
        data = file.read(0, file.size())
        file.close()
        return data

    def write(self, path: str, data: bytes) -> None:
        """Replace the contents of a file, durably; open handles see it."""
        name = path.rpartition("/")[2]
        is_there = name in self.disk.list(self.group)
        file = self.disk.open(path) if is_there else self.disk.create(path)
        file.truncate(0)
        file.write(0, data)
        self.disk.sync_now([file], [self.group])
        file.close()

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        if path.rpartition("/")[2] in self.disk.list(self.group):
            self.disk.remove(path)
            self.disk.sync_now([], [self.group])

    def ending(self, suffix: str) -> list[str]:
        """Return the files with this ending, oldest first."""
        return [f"{self.group}/{n}" for n in self.disk.list(self.group) if n.endswith(suffix)]


Harm = Callable[[Files], None]


def flip(place: int, *, batch: int = 1) -> Harm:
    """Flip a bit of one batch of the victim, by default the second."""

    def harm(files: Files) -> None:
        data = bytearray(files.read(files.victim))
        start = sum(view.size for view in list(split_batches(bytes(data)))[:batch])
        data[start + place] ^= 2
        files.write(files.victim, bytes(data))

    return harm


def edit(change: Callable[[bytes], bytes], which: str = "victim") -> Harm:
    """Replace the bytes of the victim, or of the active segment."""

    def harm(files: Files) -> None:
        path = getattr(files, which)
        data = files.read(path)
        changed = change(data)
        assert changed != data
        files.write(path, changed)

    return harm


def _swap_pages(data: bytes) -> bytes:
    one, other = data[PAGE_BYTES : 2 * PAGE_BYTES], data[2 * PAGE_BYTES : 3 * PAGE_BYTES]
    return data[:PAGE_BYTES] + other + one + data[3 * PAGE_BYTES :]


def _double_page(data: bytes) -> bytes:
    page = data[PAGE_BYTES : 2 * PAGE_BYTES]
    return data[: 2 * PAGE_BYTES] + page + data[3 * PAGE_BYTES :]


def _zero_page(data: bytes) -> bytes:
    return data[:PAGE_BYTES] + bytes(PAGE_BYTES) + data[2 * PAGE_BYTES :]


def _cut_out(data: bytes) -> bytes:
    first, second, *_ = split_batches(data)
    return data[: first.size] + data[first.size + second.size :]


def _double_batch(data: bytes) -> bytes:
    first = next(split_batches(data)).size
    return data[:first] + data


def _old(data: bytes) -> bytes:
    views = list(split_batches(data))
    return data[: sum(view.size for view in views[: len(views) // 2])]


def unreadable(sector: int) -> Harm:
    """Make one sector of the victim unreadable."""
    return lambda files: files.disk.spoil(files.victim, sector * SECTOR_BYTES)


def _missing(files: Files) -> None:
    stem = files.victim.removesuffix(LOG_SUFFIX)
    for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
        files.remove(stem + suffix)


def _missing_alone(files: Files) -> None:
    files.remove(files.victim)


def _another(files: Files) -> None:
    """The bytes of another segment under this name."""
    files.write(files.victim, files.read(files.segments()[1]))


def _within(files: Files) -> None:
    """A file of ours that begins within the victim's offsets."""
    base = int(files.victim.rpartition("/")[2].removesuffix(LOG_SUFFIX))
    files.write(f"{files.group}/{base + 1:020d}{LOG_SUFFIX}", files.read(files.segments()[1]))


def _foreign(files: Files) -> None:
    files.write(f"{files.group}/notes.txt", b"somebody else's")


def beside(suffix: str, change: Callable[[bytes], bytes] | None) -> Harm:
    """Change or remove every file with this ending."""

    def harm(files: Files) -> None:
        found = files.ending(suffix)
        assert found, f"there is no {suffix}"
        for path in found:
            if change is None:
                files.remove(path)
            else:
                files.write(path, change(files.read(path)))

    return harm


def beside_unreadable(suffix: str) -> Harm:
    """Make the first sector of every file with this ending unreadable."""

    def harm(files: Files) -> None:
        for path in files.ending(suffix):
            files.disk.spoil(path, 0)

    return harm


def _flip_middle(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 2]) + data[at + 1 :] if data else b"\2"


def _flip_end(data: bytes) -> bytes:
    return data[:-2] + bytes([data[-2] ^ 2]) + data[-1:]


def _notes(files: Files) -> None:
    files.write(f"{files.group}/damage", b"nothing that anybody wrote")


_PLACES = {
    name: sum(list(FIELD_SIZES.values())[:at]) + size - 1
    for at, (name, size) in enumerate(FIELD_SIZES.items())
}

CLOSED: dict[str, Harm] = {
    **{f"a bit in the {name}": flip(place) for name, place in _PLACES.items()},
    "a high bit in the base offset": flip(2),
    "a bit in the base offset of the first batch": flip(7, batch=0),
    "a bit in the records": flip(HEADER.size + 3),
    "two pages swapped": edit(_swap_pages),
    "a page twice": edit(_double_page),
    "a page of zeros": edit(_zero_page),
    "a batch cut out": edit(_cut_out),
    "a batch twice": edit(_double_batch),
    "a sector that cannot be read": unreadable(1),
    "the first sector cannot be read": unreadable(0),
    "cut short": edit(lambda data: data[:-10]),
    "empty": edit(lambda data: b""),
    "grown": edit(lambda data: data + bytes(50)),
    "an old copy": edit(_old),
    "deleted with its indexes": _missing,
    "deleted, its indexes left": _missing_alone,
    "another segment under its name": _another,
    "a segment within its offsets": _within,
}
"""Damage to a closed segment."""

ACTIVE: dict[str, Harm] = {
    "a bit in its last batch": edit(_flip_end, "active"),
    "a bit in its first batch": edit(
        lambda data: data[:70] + bytes([data[70] ^ 2]) + data[71:], "active"
    ),
    "cut short, appended to": edit(lambda data: data[:-10], "active"),
    "zeros at its end": edit(lambda data: data[:-20] + bytes(20), "active"),
    "deleted, appended to": lambda files: files.remove(files.active),
}
"""Damage to the active segment."""

BESIDE: dict[str, Harm] = {
    "a bit in the offset indexes": beside(".index", _flip_middle),
    "a bit in the time indexes": beside(".timeindex", _flip_middle),
    "offset indexes cut short": beside(".index", lambda data: data[: len(data) // 2]),
    "indexes deleted": beside("index", None),
    "a bit in the seals": beside("seals", _flip_middle),
    "seals deleted": beside("seals", None),
    "garbage as the notes of damage": _notes,
    "a bit in the producers' snapshots": beside(".snapshot", _flip_middle),
    "producers' snapshots deleted": beside(".snapshot", None),
    "a bit in the head of the producers' snapshots": beside(
        ".snapshot", lambda data: bytes([data[0] ^ 2]) + data[1:]
    ),
    "indexes that cannot be read": beside_unreadable("index"),
    "seals that cannot be read": beside_unreadable("seals"),
    "producers' snapshots that cannot be read": beside_unreadable(".snapshot"),
    "a foreign file": _foreign,
}
"""Damage to files beside the segments."""

HARMS: dict[str, Harm] = {**CLOSED, **ACTIVE, **BESIDE}
