"""Reads a closed segment in full to check that it is what was written.

Each batch must have a valid checksum, start where the one before ends, and have the term that the
journal records; all together must match the segment's seal. In a log with holes only the seal can
distinguish a batch that was compacted away from a lost one.
"""

from collections.abc import Callable, Generator
from contextlib import suppress

from msgspec import Struct

from kafkaesque.log.disk import File
from kafkaesque.log.disk_errors import disk_errors, is_unreadable
from kafkaesque.log.seals import Seal, Sealing
from kafkaesque.log.window import UnreadableBatch
from kafkaesque.record.view import HEADER_BYTES, first_damage, peek_size, peek_span
from kafkaesque.types import Offset, Term

PIECE_BYTES = 64 << 10
"""Bytes checked in one step, about half a millisecond; a larger batch is one step."""


class BadPlace(Struct, frozen=True, kw_only=True):
    """The first place where a segment is not what was written."""

    position: int
    offset: Offset
    reason: str


def check_segment(
    file: File,
    size: int,
    *,
    base: Offset,
    end: Offset,
    term_at: Callable[[Offset], Term | None],
    has_holes: bool,
    seals: tuple[Seal, ...],
) -> Generator[int, None, Seal | BadPlace]:
    """Read the first `size` bytes of a file, a piece per step, which yields its length.

    They should hold the offsets [base, end). Returns the first bad place, or else their seal.
    """
    position, expected = 0, base
    sealing = Sealing()
    while position < size:  # terminates: each step advances or returns
        try:
            with disk_errors(file.path):
                data = _whole_batches(file, position, size)
        except UnreadableBatch as bad:
            offset = min(expected, end - 1)
            return BadPlace(position=position, offset=offset, reason=bad.reason)
        if not data:
            return BadPlace(
                position=position, offset=min(expected, end - 1), reason="the file ends here"
            )
        # Unlike a read, a piece must not start before the expected offset.
        is_early = len(data) >= HEADER_BYTES and peek_size(data)[0] < expected
        found = first_damage(data, expected, term_at, has_holes=has_holes)
        if found is None and is_early:
            found = 0, expected, f"found the batch of offset {peek_size(data)[0]}"
        if found is not None:
            at, offset, reason = found
            return BadPlace(position=position + at, offset=min(offset, end - 1), reason=reason)
        expected = _note(data, sealing)
        position += len(data)
        yield len(data)
    if expected > end or (expected < end and not has_holes):
        reason = f"its batches end at offset {expected}, not at {end}"
        return BadPlace(position=position, offset=min(expected, end - 1), reason=reason)
    seal = sealing.seal(base, end)
    if seals and all(not is_same(seal, one) for one in seals):
        return BadPlace(position=0, offset=base, reason="its batches do not match its seal")
    return seal


def is_same(one: Seal, other: Seal) -> bool:
    """Return whether two seals are of the same batches."""
    return (one.bytes, one.checksum) == (other.bytes, other.checksum)


def _whole_batches(file: File, position: int, size: int) -> memoryview:
    """Return the next piece: whole batches, or the bytes found instead of one."""
    data = memoryview(_read_ahead(file, position, min(PIECE_BYTES, size - position)))
    stop = 0
    while stop + HEADER_BYTES <= len(data):
        length = peek_size(data, stop)[1]
        if length < HEADER_BYTES or stop + length > len(data):
            break
        stop += length
    if stop:
        return data[:stop]
    length = peek_size(data)[1] if len(data) >= HEADER_BYTES else 0
    if len(data) < length <= size - position:
        return memoryview(_read(file, position, length))
    return data


def _read_ahead(file: File, position: int, length: int) -> bytes:
    """Return bytes at a position, fewer if a bad sector follows.

    Raises UnreadableBatch if not even a header can be read.
    """
    while length > HEADER_BYTES:  # terminates: the length is halved
        with suppress(UnreadableBatch):
            return _read(file, position, length)
        length = max(length // 2, HEADER_BYTES)
    return _read(file, position, length)


def _read(file: File, position: int, length: int) -> bytes:
    try:
        return file.read(position, length)
    except OSError as error:
        if not is_unreadable(error):
            raise
        reason = f"the disk cannot read it: {error.strerror}"
        raise UnreadableBatch(position, reason) from error


def _note(data: memoryview, sealing: Sealing) -> Offset:
    """Add whole, good batches to the seal; returns where the last of them ends."""
    position = 0
    while position < len(data):
        length = peek_size(data, position)[1]
        batch = data[position : position + length]
        sealing.note(batch, length)
        position += length
    return peek_span(batch)[1]
