"""A batch's header, read and stamped in place; the records after it stay opaque.

Layout of a batch (big-endian; `docs/reference/format-batch.md` has it worked by hand):

    base offset 8 | length of what follows 4 | leader epoch 4 | magic 1 | crc 4 |
    attributes 2 | last offset delta 4 | base timestamp 8 | max timestamp 8 |
    producer id 8 | producer epoch 2 | base sequence 4 | record count 4 | records …

The checksum covers everything from the attributes onwards. Base offset and leader epoch lie outside
it, so a leader stamps both without touching the producer's bytes: that is why a batch can be the
Raft entry.
"""

import struct
from collections.abc import Callable, Iterator
from enum import IntEnum

from kafkaesque.record.crc import crc32c
from kafkaesque.record.errors import CorruptBatch, MalformedBatch, UnsupportedBatch
from kafkaesque.types import Buffer, Offset, Term

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
"""61: the size of the smallest possible batch."""

LENGTH_OVERHEAD = 12
"""The length field counts the bytes after itself; base offset and length come before."""

_LENGTH_MIN = HEADER_BYTES - LENGTH_OVERHEAD

MAGIC = 2
NO_PRODUCER_ID = -1

_PREFIX = struct.Struct(">qi")
_SPAN = struct.Struct(">q15xi8xq")
_SEAL = struct.Struct(">qiibI2xi")
"""Base offset, length, term, magic, checksum and last offset delta."""
_OFFSET = struct.Struct(">q")
_TERM = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TERM_AT = 12
_CRC_AT = 17
_MAX_TIMESTAMP_AT = 35
CRC_FROM = 21
"""The checksum covers the batch from its attributes, at this byte, to its end."""


CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20


class Codec(IntEnum):
    """How the records of a batch are compressed; the numbers are Kafka's."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchView:
    """One batch's header fields, as they were at construction, and a view of its bytes."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp_ms",
        "crc",
        "data",
        "last_offset_delta",
        "magic",
        "max_timestamp_ms",
        "producer_epoch",
        "producer_id",
        "record_count",
        "term",
    )

    base_offset: Offset
    term: Term
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    data: memoryview

    def __init__(self, data: Buffer, position: int = 0) -> None:
        """Parse the batch at `position`; raises if it is incomplete or not of format 2."""
        available = len(data) - position
        if available < HEADER_BYTES:
            raise MalformedBatch(
                f"a batch header has {HEADER_BYTES} bytes, only {available} are there"
            )
        (
            self.base_offset,
            length,
            self.term,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(data, position)
        if self.magic != MAGIC:
            raise UnsupportedBatch(
                f"batches of format {self.magic} are not supported, only format 2"
            )
        size = length + LENGTH_OVERHEAD
        if size < HEADER_BYTES or size > available:
            raise MalformedBatch(f"the batch claims {size} bytes, {available} are there")
        view = data if isinstance(data, memoryview) else memoryview(data)
        self.data = view[position : position + size]

    @property
    def size(self) -> int:
        """The batch's length in bytes, including the header."""
        return len(self.data)

    @property
    def last_offset(self) -> Offset:
        """The offset of the last record, compacted away or not."""
        return self.base_offset + self.last_offset_delta

    @property
    def end_offset(self) -> Offset:
        """The first offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """The codec of the records; raises if the number is not a codec."""
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise UnsupportedBatch(f"compression codec {number} does not exist")
        return Codec(number)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the timestamp is the broker's, not the producer's."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether this is a broker's marker, which consumers never see."""
        return bool(self.attributes & CONTROL_BIT)

    def check(self) -> None:
        """Raise unless header and checksum are consistent, without decoding a record.

        For batches straight from a producer: a compacted batch has fewer records than its offsets.
        """
        if self.record_count < 1:
            raise MalformedBatch(f"a batch must hold records, this one claims {self.record_count}")
        if self.last_offset_delta != self.record_count - 1:
            raise MalformedBatch(
                f"{self.record_count} records cannot end at offset delta {self.last_offset_delta}"
            )
        if self.attributes & CODEC_MASK:
            self.codec  # noqa: B018 - raises for a codec that does not exist
        self.check_crc()

    def check_crc(self) -> None:
        """Raise unless the checksum matches."""
        if crc32c(self.data[CRC_FROM:]) != self.crc:
            raise CorruptBatch(f"the checksum of the batch at offset {self.base_offset} is wrong")


def stamp(batch: bytearray | memoryview, base_offset: Offset, term: Term) -> None:
    """Write offset and term into a batch in place; its checksum stays valid."""
    _OFFSET.pack_into(batch, 0, base_offset)
    _TERM.pack_into(batch, _TERM_AT, term)


def stamp_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Make the broker's time count for all records of a batch, in place and without reading them.

    Readers then use the batch's newest timestamp for each record; the checksum is recomputed.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CRC_FROM)
    _ATTRIBUTES.pack_into(batch, CRC_FROM, attributes | LOG_APPEND_TIME_BIT)
    _OFFSET.pack_into(batch, _MAX_TIMESTAMP_AT, now_ms)
    with memoryview(batch) as view:
        _CRC.pack_into(batch, _CRC_AT, crc32c(view[CRC_FROM:]))


def peek_size(data: Buffer, position: int = 0) -> tuple[Offset, int]:
    """Return base offset and total size of the batch at `position`, from its first 12 bytes."""
    base_offset, length = _PREFIX.unpack_from(data, position)
    return base_offset, length + LENGTH_OVERHEAD


def peek_span(data: Buffer) -> tuple[Offset, Offset, int]:
    """Return base and end offset of a whole, checked batch, and its greatest timestamp."""
    base, last_delta, max_timestamp_ms = _SPAN.unpack_from(data)
    return base, base + last_delta + 1, max_timestamp_ms


def first_damage(
    data: Buffer,
    offset: Offset,
    term_at: Callable[[Offset], Term | None],
    *,
    has_holes: bool = False,
) -> tuple[int, Offset, str] | None:
    """Return the position of the first batch that does not belong in the log there; None if all do.

    Also returns the offset up to which all is good, and the reason. The first batch must cover
    `offset`, or in a log with holes be the next one. The checksum does not cover base offset and
    term: each batch must start where the one before ends, and each new term must match `term_at`,
    if that is known. This costs a microsecond per batch and one per 4 KB, cheap enough to check
    everything read from a disk.
    """
    position, term = 0, -1
    expected = offset
    with memoryview(data) as view:
        total = len(view)
        while position < total:
            if total - position < HEADER_BYTES:
                return position, expected, "the batch is cut short"
            base, length, its_term, magic, crc, delta = _SEAL.unpack_from(view, position)
            end = position + length + LENGTH_OVERHEAD
            if magic != MAGIC or length < _LENGTH_MIN or end > total:
                return position, expected, "there is no batch"
            if crc32c(view[position + CRC_FROM : end]) != crc:
                return position, expected, "the batch has a wrong checksum"
            if base != expected and not (
                (has_holes and base > expected)
                or (position == 0 and base <= expected <= base + delta)
            ):
                return position, expected, f"found the batch of offset {base}"
            if its_term != term:
                if term_at(base) not in (its_term, None):
                    return position, expected, f"the batch is of term {its_term}"
                term = its_term
            expected = base + delta + 1
            position = end
    return None


def split_batches(data: Buffer) -> Iterator[BatchView]:
    """Yield the contiguous batches in `data`; raises if the last one is cut short."""
    position = 0
    while position < len(data):
        view = BatchView(data, position)
        yield view
        position += view.size
