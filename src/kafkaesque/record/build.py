"""Builds batches from records: new ones, and old ones with fewer records for compaction."""

import struct
from collections.abc import Sequence

from msgspec import Struct

from kafkaesque.record.compression import compress
from kafkaesque.record.crc import crc32c
from kafkaesque.record.record import Record
from kafkaesque.record.varint import write_varint, write_varlong
from kafkaesque.record.view import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_PRODUCER_ID,
    TRANSACTIONAL_BIT,
    BatchView,
    Codec,
)
from kafkaesque.types import NO_TERM, Buffer, Offset, Term

NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1

_UNSEEN: Term = -1
"""Producers write this where a broker will write its term."""

_CRC = struct.Struct(">I")
_CRC_AT = 17

_DELETE_HORIZON_BIT = 0x40
"""The base timestamp is when Kafka's compaction may drop the tombstones (KIP-534)."""


class ProducerStamp(Struct, frozen=True, kw_only=True):
    """A batch's producer, and the sequence of its first record."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


class BatchTraits(Struct, frozen=True, kw_only=True):
    """The kind of batch, apart from its codec."""

    is_transactional: bool = False
    is_control: bool = False
    is_log_append_time: bool = False
    """The broker's time counts: readers see the batch's newest timestamp on each record."""


NO_PRODUCER = ProducerStamp(
    producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH, base_sequence=NO_SEQUENCE
)
PLAIN = BatchTraits()


class _Header(Struct, frozen=True, kw_only=True):
    """The batch header fields that do not follow from the bytes after it."""

    base_offset: Offset
    term: Term
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer: ProducerStamp
    record_count: int


def build_batch(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    base_offset: Offset | None = None,
    term: Term = NO_TERM,
    producer: ProducerStamp | None = None,
    traits: BatchTraits = PLAIN,
    level: int | None = None,
) -> bytearray:
    """Return one batch of `records`, at least one, in order of offset.

    The base offset defaults to the first record's; `level` is the codec's. A compressed batch stays
    compressed even if that makes it larger, unlike in some clients.
    """
    assert records, "only compaction makes empty batches"
    first = records[0]
    base = first.offset if base_offset is None else base_offset
    header = _Header(
        base_offset=base,
        term=term,
        attributes=_attributes(codec, traits),
        last_offset_delta=records[-1].offset - base,
        base_timestamp_ms=first.timestamp_ms,
        max_timestamp_ms=max(record.timestamp_ms for record in records),
        producer=NO_PRODUCER if producer is None else producer,
        record_count=len(records),
    )
    return _assemble(header, _pack(records, header, codec, level))


def wrap_records(
    encoded: Buffer,
    *,
    record_count: int,
    timestamp_ms: int,
    timestamp_ms_max: int | None = None,
    codec: Codec = Codec.NONE,
    producer: ProducerStamp = NO_PRODUCER,
    is_transactional: bool = False,
) -> bytearray:
    """Return one batch around already encoded records, for callers that encode in bulk.

    Their offset deltas must be 0, 1, 2 … and their timestamp deltas count from `timestamp_ms`;
    without a newest timestamp they must all be 0.
    """
    assert record_count > 0, "only compaction makes empty batches"
    header = _Header(
        base_offset=0,
        term=NO_TERM,
        attributes=int(codec) | (TRANSACTIONAL_BIT if is_transactional else 0),
        last_offset_delta=record_count - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms if timestamp_ms_max is None else timestamp_ms_max,
        producer=producer,
        record_count=record_count,
    )
    return _assemble(header, encoded if codec is Codec.NONE else compress(codec, encoded))


def rebuild_batch(view: BatchView, kept: Sequence[Record]) -> bytearray:
    """Return the batch with only the records `kept`, which `read_records` gave, in their order.

    It covers the same offsets and keeps its producer's sequence numbers, so the log gets no gap and
    the producer's next batch does not look out of order. With nothing kept only the header remains,
    without codec and base timestamp, exactly as Kafka leaves it.
    """
    attributes, base_timestamp_ms = view.attributes, view.base_timestamp_ms
    # With the broker's time every record was read with the batch's newest timestamp, so that stays.
    max_timestamp_ms = max((record.timestamp_ms for record in kept), default=view.max_timestamp_ms)
    if not kept:
        attributes &= ~(CODEC_MASK | _DELETE_HORIZON_BIT)
        base_timestamp_ms = NO_TIMESTAMP
    header = _Header(
        base_offset=view.base_offset,
        term=view.term,
        attributes=attributes,
        last_offset_delta=view.last_offset_delta,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer=ProducerStamp(
            producer_id=view.producer_id,
            producer_epoch=view.producer_epoch,
            base_sequence=view.base_sequence,
        ),
        record_count=len(kept),
    )
    return _assemble(header, _pack(kept, header, view.codec) if kept else b"")


def readdress_batch(view: BatchView, producer: ProducerStamp) -> bytearray:
    """Return the batch as another producer would send it, with the same record bytes.

    Offset and term are those of a batch that no broker has seen, and of the attributes only the
    codec remains: a producer cannot mark a batch as part of a transaction, or as compacted. The
    timestamps must be the producer's.
    """
    assert not view.is_control, "only brokers write control batches"
    assert not view.is_log_append_time, "the records do not carry the broker's time"
    header = _Header(
        base_offset=0,
        term=_UNSEEN,
        attributes=view.attributes & CODEC_MASK,
        last_offset_delta=view.last_offset_delta,
        base_timestamp_ms=view.base_timestamp_ms,
        max_timestamp_ms=view.max_timestamp_ms,
        producer=producer,
        record_count=view.record_count,
    )
    with view.data[HEADER_BYTES:] as payload:
        return _assemble(header, payload)


def _attributes(codec: Codec, traits: BatchTraits) -> int:
    attributes = int(codec)
    if traits.is_log_append_time:
        attributes |= LOG_APPEND_TIME_BIT
    if traits.is_transactional:
        attributes |= TRANSACTIONAL_BIT
    if traits.is_control:
        attributes |= CONTROL_BIT
    return attributes


def _pack(
    records: Sequence[Record], header: _Header, codec: Codec, level: int | None = None
) -> bytes | bytearray:
    encoded = _encode(records, header)
    return encoded if codec is Codec.NONE else compress(codec, encoded, level)


def _encode(records: Sequence[Record], header: _Header) -> bytearray:
    base_offset, base_timestamp_ms = header.base_offset, header.base_timestamp_ms
    previous_delta = -1
    out = bytearray()
    body = bytearray()
    for record in records:
        offset_delta = record.offset - base_offset
        assert previous_delta < offset_delta <= header.last_offset_delta, "offsets must rise"
        previous_delta = offset_delta
        body.clear()
        body.append(0)
        write_varlong(body, record.timestamp_ms - base_timestamp_ms)
        write_varint(body, offset_delta)
        _write_bytes(body, record.key)
        _write_bytes(body, record.value)
        write_varint(body, len(record.headers))
        for key, value in record.headers:
            _write_bytes(body, key.encode())
            _write_bytes(body, value)
        write_varint(out, len(body))
        out += body
    return out


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(data))
        out += data


def _assemble(header: _Header, payload: Buffer) -> bytearray:
    batch = bytearray(HEADER_BYTES)
    batch += payload
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LENGTH_OVERHEAD,
        header.term,
        MAGIC,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.producer.producer_id,
        header.producer.producer_epoch,
        header.producer.base_sequence,
        header.record_count,
    )
    with memoryview(batch) as view:
        _CRC.pack_into(batch, _CRC_AT, crc32c(view[CRC_FROM:]))
    return batch
