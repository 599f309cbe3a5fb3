"""Chunk files: batches of one partition back to back, and a footer that describes them.

    chunk  := batch …  footer
    footer := magic "KQBC" | version uint16 | first int64 | end int64 | batches uint32 |
              records uint64 | bytes of the batches uint64 | of the largest uint32 | crc uint32

The footer comes last because its facts are known last: a chunk is written in one go, synced, and
only then gets its name. So any file with that name is whole, and can be checked on its own; that
is how an interrupted backup knows what it has.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kafkaesque.backup.errors import DamagedBackup
from kafkaesque.backup.manifest import NEW_SUFFIX, SavedChunk, sync_folder
from kafkaesque.errors import NewerFormat
from kafkaesque.record.crc import crc32c_on
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import HEADER_BYTES, LENGTH_OVERHEAD, BatchView, peek_size
from kafkaesque.types import Buffer, Offset

MAGIC = b"KQBC"
VERSION = 1

_FACTS = struct.Struct(">4sHqqIQQI")
_CRC = struct.Struct(">I")
FOOTER_BYTES = _FACTS.size + _CRC.size

_BUFFER_BYTES = 1 << 20


class ChunkWriter:
    """A chunk being written; `finish` gives it its name, `abandon` gives it up."""

    def __init__(self, folder: Path, first: Offset) -> None:
        self.first = first
        self.size = 0
        self._folder = folder
        self._batches = 0
        self._records = 0
        self._largest = 0
        self._crc = 0
        self._path = folder / f"{first:020}.batches{NEW_SUFFIX}"
        self._file = self._path.open("wb", buffering=_BUFFER_BYTES)

    def append(self, view: BatchView) -> None:
        """Write one batch unchanged."""
        self._write(view.data)
        self.size += view.size
        self._batches += 1
        self._records += view.record_count
        self._largest = max(self._largest, view.size)

    def finish(self, end: Offset) -> SavedChunk:
        """Write the footer, sync, and rename; the chunk covers all offsets before `end`."""
        chunk = SavedChunk(
            first=self.first,
            end=end,
            batches=self._batches,
            records=self._records,
            size=self.size,
            largest=self._largest,
        )
        self._write(_facts(chunk))
        chunk = replace(chunk, crc32c=self._crc)
        self._write(_CRC.pack(chunk.crc32c))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(self._folder / chunk.name)
        sync_folder(self._folder)
        return chunk

    def abandon(self) -> None:
        """Close without finishing; resuming the backup removes the leftover."""
        self._file.close()

    def _write(self, data: Buffer) -> None:
        self._file.write(data)
        self._crc = crc32c_on(self._crc, data)


def read_footer(path: Path) -> SavedChunk:
    """Return a chunk's footer; raises DamagedBackup if it is unreadable."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            at = size - FOOTER_BYTES
            if at < 0:
                raise DamagedBackup(str(path), size, "the file is too short to be a chunk")
            file.seek(at)
            footer = file.read(FOOTER_BYTES)
    except OSError as error:
        raise DamagedBackup(str(path), 0, f"it cannot be read: {error.strerror}") from error
    magic, version, first, end, batches, records, data_size, largest = _FACTS.unpack_from(footer)
    if magic != MAGIC:
        raise DamagedBackup(str(path), at, "the footer is missing: the file was cut or added to")
    if version > VERSION:
        raise NewerFormat(str(path), version, VERSION)
    if version < VERSION:
        raise DamagedBackup(str(path), at, f"version {version} does not exist")
    if data_size != at:
        raise DamagedBackup(str(path), at, f"the footer says {data_size} bytes, but there are {at}")
    (crc,) = _CRC.unpack_from(footer, _FACTS.size)
    return SavedChunk(
        first=first,
        end=end,
        batches=batches,
        records=records,
        size=data_size,
        largest=largest,
        crc32c=crc,
    )


def scan_chunk(path: Path) -> SavedChunk:
    """Return a chunk's footer after checking the whole file; raises DamagedBackup."""
    said = read_footer(path)
    if said.name != path.name or said.first > said.end:
        reason = f"its footer claims the offsets {said.first} to before {said.end}"
        raise DamagedBackup(str(path), said.size, reason)
    crc = batches = records = 0
    for _, view in read_batches(path, said):
        crc = crc32c_on(crc, view.data)
        batches += 1
        records += view.record_count
    if (batches, records) != (said.batches, said.records):
        counts = f"{said.batches} batches and {said.records} records"
        found = f"but there are {batches} and {records}"
        raise DamagedBackup(str(path), said.size, f"the footer says {counts}, {found}")
    if crc32c_on(crc, _facts(said)) != said.crc32c:
        reason = "the file's checksum is wrong, although every batch is sound"
        raise DamagedBackup(str(path), said.size, reason)
    return said


def read_batches(path: Path, chunk: SavedChunk) -> Iterator[tuple[int, BatchView]]:
    """Yield each batch with its byte position; raises DamagedBackup.

    Checks each batch's checksum, and that offsets rise and lie in the chunk; only the first batch
    may start before it, and only the last may end after it.
    """
    position = 0
    previous_end: Offset | None = None
    try:
        with path.open("rb", buffering=_BUFFER_BYTES) as file:
            while position < chunk.size:  # ends: every batch has a size
                left = chunk.size - position
                head = file.read(min(LENGTH_OVERHEAD, left))
                size = peek_size(head)[1] if len(head) == LENGTH_OVERHEAD else 0
                if not HEADER_BYTES <= size <= left:
                    raise DamagedBackup(str(path), position, f"no batch has {size} bytes here")
                try:
                    view = BatchView(head + file.read(size - LENGTH_OVERHEAD))
                    view.check_crc()
                except BatchError as error:
                    raise DamagedBackup(str(path), position, str(error)) from error
                _check_order(path, position, view, chunk, previous_end)
                yield position, view
                previous_end = view.end_offset
                position += size
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
        raise DamagedBackup(str(path), position, reason) from error


def _facts(chunk: SavedChunk) -> bytes:
    return _FACTS.pack(
        MAGIC,
        VERSION,
        chunk.first,
        chunk.end,
        chunk.batches,
        chunk.records,
        chunk.size,
        chunk.largest,
    )


def _check_order(
    path: Path, position: int, view: BatchView, chunk: SavedChunk, previous_end: Offset | None
) -> None:
    if previous_end is None:
        begins_right = view.end_offset > chunk.first
    else:
        begins_right = view.base_offset >= previous_end
    has_sense = view.last_offset_delta >= 0 and 0 <= view.record_count <= view.last_offset_delta + 1
    if not (begins_right and has_sense and view.base_offset < chunk.end):
        reason = f"a batch of the offsets {view.base_offset} to {view.last_offset} cannot be here"
        raise DamagedBackup(str(path), position, reason)
