"""The seals of a log's closed segments, kept in a small file beside them.

A batch's checksum does not cover its base offset and term, and a file that is missing, old or
foreign still has batches with valid checksums. A *seal* says what the file must be.

A seal on disk always matches a durable file, whenever a crash comes: it is written when its segment
is closed, and before a file is replaced both the old and the new seal are saved. A seal that is
missing, because a crash came first or an earlier version wrote the log, is made again by the next
reader of the segment (`broker/replication/scrubber.py`); a damaged seals file counts as empty.
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
"""The size in the seal of a lost segment that had no seal: no file matches it."""

_FILE = CheckedFile(name=NAME, magic=b"KQSE", format=1)


class Seal(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The seal of a closed segment, which covers the offsets [base, end)."""

    base: Offset
    end: Offset
    bytes: int
    checksum: int
    """Over the stamps of all batches, in order."""

    first: int
    """Of the first batch's stamp alone."""

    last_position: int
    last: int
    """Where the last batch starts, and the checksum of its stamp alone."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Seal])


class Sealing:
    """Builds the seal of a segment from its batches, in order."""

    def __init__(self) -> None:
        self._first = self._last = self._last_position = 0
        self._bytes = self._checksum = 0

    def note(self, batch: Buffer, size: int) -> None:
        """Add the next batch, of `size` bytes; at least its stamp is needed."""
        stamp = batch[:STAMP_BYTES]
        self._checksum = crc32c(stamp, self._checksum)
        self._last = crc32c(stamp)
        self._last_position = self._bytes
        if self._bytes == 0:
            self._first = self._last
        self._bytes += size

    def seal(self, base: Offset, end: Offset) -> Seal:
        """Return the seal of a segment that holds the batches added so far."""
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
    """Return the seal of a segment that is lost and otherwise unknown."""
    return Seal(
        base=base, end=end, bytes=UNKNOWN_BYTES, checksum=0, first=0, last_position=0, last=0
    )


def is_like(file: File, size: int, seal: Seal) -> bool:
    """Return whether a file has the size and the first and last batch of its seal."""
    if size != seal.bytes:
        return False
    if size == 0:
        return True
    first = read_if_readable(file, 0, STAMP_BYTES)
    last = read_if_readable(file, seal.last_position, STAMP_BYTES)
    return crc32c(first) == seal.first and crc32c(last) == seal.last


def decode_seals(path: str, data: bytes) -> list[Seal] | None:
    """Return the seals in a seals file, by base; None if it is damaged. Raises NewerFormat."""
    state = _FILE.state(path, data)
    if state is not None:
        with suppress(msgspec.MsgspecError):
            return _decoder.decode(state)
    return None


class Seals:
    """The seals of one log by segment base; the owner decides when to save changes.

    A segment has two seals while its file is being replaced: the file matches one of them.
    """

    def __init__(self, disk: Disk, folder: str) -> None:
        self.is_dirty = False
        """Whether the file on disk is out of date."""
        self.lost: str | None = None
        """Why the seals of earlier runs are unknown; then none of them counts."""
        self._disk = disk
        self._folder = folder
        self._by_base: dict[Offset, tuple[Seal, ...]] = {}
        self._new: File | None = None

    @classmethod
    def load(cls, disk: Disk, folder: str) -> "Seals":
        """Return the seals that earlier runs saved; raises NewerFormat."""
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

    # ── known seals ──────────────────────────────────────────────────────────────────────────

    def of(self, base: Offset) -> tuple[Seal, ...]:
        """Return the seals that the file of the segment at `base` may match; nothing if unknown."""
        return self._by_base.get(base, ())

    def all(self) -> list[Seal]:
        """Return all seals, by base."""
        return [seal for base in sorted(self._by_base) for seal in self._by_base[base]]

    def put(self, seal: Seal) -> None:
        """Make this the only seal of its segment."""
        if self.of(seal.base) != (seal,):
            self._by_base[seal.base] = (seal,)
            self.is_dirty = True

    def expect(self, seal: Seal) -> None:
        """Allow the segment's file to match this seal too: it is about to be replaced."""
        now = self.of(seal.base)[:1]  # a second one is from an abandoned attempt
        assert now, "a file is sealed before it is replaced"
        self._by_base[seal.base] = now if seal in now else (*now, seal)
        self.is_dirty = True

    def forget(self, bases: Iterable[Offset]) -> None:
        """Drop the seals of these segments."""
        for base in list(bases):
            if self._by_base.pop(base, None) is not None:
                self.is_dirty = True

    def bases_from(self, base: Offset) -> list[Offset]:
        """Return the bases at and after this one."""
        return [one for one in self._by_base if one >= base]

    # ── saving ───────────────────────────────────────────────────────────────────────────────

    @property
    def is_saving(self) -> bool:
        """Whether a new file was started and not finished."""
        return self._new is not None

    def begin_saving(self) -> File:
        """Write all seals to a temporary file; `finish_saving` follows when it is synced."""
        assert self._new is None
        file = _FILE.write_new(self._disk, self._folder, _encoder.encode(self.all()))
        self._new = file
        self.is_dirty = False
        return file

    def finish_saving(self, file: File) -> bool:
        """Rename the synced file into place; the caller syncs the folder.

        Returns whether it did: the file may have been abandoned meanwhile.
        """
        if self._new is not file:
            return False
        self._new = None
        file.close()
        with disk_errors(file.path):
            self._disk.rename(file.path, f"{self._folder}/{NAME}")
        return True

    def give_up_saving(self) -> None:
        """Abandon the new file; its content must still be saved."""
        if self._new is not None:
            self._new.close()
            self._new = None
            self.is_dirty = True

    def save_now(self) -> None:
        """Save all seals; durable on return. Without room, removes the outdated file.

        For changes that must not wait: a seal that no longer holds must go before its file does.
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
        """Remove the file and its temporary copy; the caller syncs the folder."""
        self.give_up_saving()
        remove_seals(self._disk, self._folder)


def remove_seals(disk: Disk, folder: str) -> None:
    """Remove a log's seals, if there are any; the caller syncs the folder."""
    with disk_errors(folder):
        for name in (_FILE.new_name, NAME):
            with suppress(FileNotFoundError):
                disk.remove(f"{folder}/{name}")
