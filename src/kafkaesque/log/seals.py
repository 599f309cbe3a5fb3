"""What each closed segment of a log held when it was closed, kept in a small file beside them.

Base offset and term lie outside a batch's checksum, and a file that is missing, old or somebody
else's has batches whose checksums are right. A *seal* says what the file must be.

A seal on disk is true of a durable file, whatever crash comes: it is written when its segment is
closed, and before a file is replaced the seals of the old one and of the new one are both there. A
seal that is missing, because a crash came first or an earlier version wrote the log, is made again
by the next reader of the segment (`broker/scrub.py`); a file of seals that is damaged holds none.
"""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from kafkaesque.errors import DiskFull
from kafkaesque.log.checked_file import CheckedFile
from kafkaesque.log.disk import Disk, File
from kafkaesque.log.disk_errors import disk_errors, read_if_readable
from kafkaesque.record.crc import crc32c
from kafkaesque.record.view import CRC_FROM
from kafkaesque.types import Buffer, Offset

NAME = "seals"
STAMP_BYTES = CRC_FROM
"""A batch's header up to its checksum: base offset, length, term, magic, checksum."""

UNKNOWN_BYTES = -1
"""The size in the seal of a segment that is lost and had none: no file is like it."""

_FILE = CheckedFile(name=NAME, magic=b"KQSE", format=1)


class Seal(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A closed segment: it covers the offsets [base, end)."""

    base: Offset
    end: Offset
    bytes: int
    checksum: int
    """Over the stamps of all batches, one behind the other."""

    first: int
    """Of the first batch's stamp alone."""

    last_position: int
    last: int
    """Where the last batch begins, and the checksum of its stamp alone."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Seal])


class Sealing:
    """The seal of a segment whose batches are looked at one after the other."""

    def __init__(self) -> None:
        self._first = self._last = self._last_position = 0
        self._bytes = self._checksum = 0

    def note(self, batch: Buffer, size: int) -> None:
        """Take account of the next batch, of `size` bytes; at least its stamp is needed."""
        stamp = batch[:STAMP_BYTES]
        self._checksum = crc32c(stamp, self._checksum)
        self._last = crc32c(stamp)
        self._last_position = self._bytes
        if self._bytes == 0:
            self._first = self._last
        self._bytes += size

    def seal(self, base: Offset, end: Offset) -> Seal:
        """Return the seal of a segment that holds the batches that were noted."""
        return Seal(
            base=base,
            end=end,
            bytes=self._bytes,
            checksum=self._checksum,
            first=self._first,
            last_position=self._last_position,
            last=self._last,
        )


def lost_seal(base: Offset, end: Offset) -> Seal:
    """Return the seal of a segment of which only is known that it is lost."""
    return Seal(
        base=base, end=end, bytes=UNKNOWN_BYTES, checksum=0, first=0, last_position=0, last=0
    )


def is_like(file: File, size: int, seal: Seal) -> bool:
    """Tell whether a file has the size, the first and the last batch that its seal says."""
    if size != seal.bytes:
        return False
    if size == 0:
        return True
    first = read_if_readable(file, 0, STAMP_BYTES)
    last = read_if_readable(file, seal.last_position, STAMP_BYTES)
    return crc32c(first) == seal.first and crc32c(last) == seal.last


def decode_seals(path: str, data: bytes) -> list[Seal] | None:
    """Return what a file of seals holds, by base; None if it is damaged. Raises NewerFormat."""
    state = _FILE.state(path, data)
    if state is not None:
        with suppress(msgspec.MsgspecError):
            return _decoder.decode(state)
    return None


class Seals:
    """The seals of one log by the base of their segments; a change is saved when its owner says so.

    A segment has two seals while its file is being replaced: it is like the one or the other.
    """

    def __init__(self, disk: Disk, folder: str) -> None:
        self.is_dirty = False
        """Whether the file lacks something."""
        self.lost: str | None = None
        """Why the seals of earlier runs are not known; none of them counts then."""
        self._disk = disk
        self._folder = folder
        self._by_base: dict[Offset, tuple[Seal, ...]] = {}
        self._new: File | None = None

    @classmethod
    def load(cls, disk: Disk, folder: str) -> "Seals":
        """Return what earlier runs saved; raises NewerFormat."""
        seals = cls(disk, folder)
        data = _FILE.load(disk, folder)
        if data is None:
            return seals
        path = f"{folder}/{NAME}"
        found = decode_seals(path, data)
        if found is None:
            seals.lost = f"{path} is damaged"
            seals.is_dirty = True
        for seal in found or ():
            seals._by_base[seal.base] = (*seals.of(seal.base), seal)
        return seals

    # ── what is known ────────────────────────────────────────────────────────────────────────

    def of(self, base: Offset) -> tuple[Seal, ...]:
        """Return what the file of the segment at `base` may be like; nothing if not known."""
        return self._by_base.get(base, ())

    def all(self) -> list[Seal]:
        """Return all seals, by base."""
        return [seal for base in sorted(self._by_base) for seal in self._by_base[base]]

    def put(self, seal: Seal) -> None:
        """Let this be the only seal of its segment."""
        if self.of(seal.base) != (seal,):
            self._by_base[seal.base] = (seal,)
            self.is_dirty = True

    def expect(self, seal: Seal) -> None:
        """Let the segment's file be like this one, too: it is about to be replaced."""
        now = self.of(seal.base)[:1]  # the second is of an attempt that was given up
        assert now, "what a file is like is known before it is replaced"
        self._by_base[seal.base] = now if seal in now else (*now, seal)
        self.is_dirty = True

    def forget(self, bases: Iterable[Offset]) -> None:
        """Know nothing of these segments any more."""
        for base in list(bases):
            if self._by_base.pop(base, None) is not None:
                self.is_dirty = True

    def bases_from(self, base: Offset) -> list[Offset]:
        """Return the bases from this one on."""
        return [one for one in self._by_base if one >= base]

    # ── saving ───────────────────────────────────────────────────────────────────────────────

    @property
    def is_saving(self) -> bool:
        """Whether a new file was begun and not finished."""
        return self._new is not None

    def begin_saving(self) -> File:
        """Write all seals under another name; `finish_saving` follows when that is synced."""
        assert self._new is None
        file = _FILE.write_new(self._disk, self._folder, _encoder.encode(self.all()))
        self._new = file
        self.is_dirty = False
        return file

    def finish_saving(self, file: File) -> bool:
        """Let the synced file take its name; the folder is still to be synced.

        Returns whether it did: meanwhile it may have been given up.
        """
        if self._new is not file:
            return False
        self._new = None
        file.close()
        with disk_errors(file.path):
            self._disk.rename(file.path, f"{self._folder}/{NAME}")
        return True

    def give_up_saving(self) -> None:
        """Forget the file that was begun; what it holds is still to be saved."""
        if self._new is not None:
            self._new.close()
            self._new = None
            self.is_dirty = True

    def save_now(self) -> None:
        """Save all seals; durable on return. Without room there is no file rather than an old one.

        For what must not wait: a seal that is not true any more must be gone before its file is.
        """
        self.give_up_saving()
        try:
            file = self.begin_saving()
            with disk_errors(file.path):
                self._disk.sync_now([file], [])
            self.finish_saving(file)
        except DiskFull:
            self.give_up_saving()
            self.remove_file()
            self.is_dirty = True
        with disk_errors(self._folder):
            self._disk.sync_now([], [self._folder])

    def remove_file(self) -> None:
        """Remove what is there of the file; the folder is still to be synced."""
        self.give_up_saving()
        remove_seals(self._disk, self._folder)


def remove_seals(disk: Disk, folder: str) -> None:
    """Remove a log's seals, if there are any; the folder is still to be synced."""
    with disk_errors(folder):
        for name in (_FILE.new_name, NAME):
            with suppress(FileNotFoundError):
                disk.remove(f"{folder}/{name}")
