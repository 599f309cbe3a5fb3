"""Reads records from a batch; checks everything and accepts any bytes as input.

    record: length varint | attributes 1 | timestamp delta varlong | offset delta varint |
            key | value | header count varint | headers …
    key, value: length varint, -1 if there is none | bytes
    header: key length varint | UTF-8 | value as above

Only code that needs records uses this (compaction, topics that look into batches, the gateway);
producing and fetching pass batches through unread.
"""

from collections.abc import Iterator

from kafkaesque.record.compression import decompress
from kafkaesque.record.errors import MalformedBatch, OversizedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.record import Record
from kafkaesque.record.varint import read_varint, read_varlong
from kafkaesque.record.view import HEADER_BYTES, BatchView

RECORD_BYTES_MIN = 7
"""Length, attributes, two deltas, no key, no value, no headers: a byte each."""

_TIMESTAMP_END = 1 << 63
_DEFAULT_LIMITS = RecordLimits()

_Headers = tuple[tuple[str, bytes | None], ...]


def read_records(view: BatchView, limits: RecordLimits = _DEFAULT_LIMITS) -> list[Record]:
    """Return all records of the batch, decompressed if need be.

    Raises only MalformedBatch for contradictory bytes, OversizedBatch beyond the limits, and
    UnsupportedBatch for an unknown codec. Does not verify the checksum: see `BatchView.check_crc`.
    A compacted batch has fewer records than offsets, or none.
    """
    return list(iterate_records(view, limits))


def iterate_records(view: BatchView, limits: RecordLimits = _DEFAULT_LIMITS) -> Iterator[Record]:
    """Yield the records of a batch, for callers that may need only the first of a million.

    Raises as `read_records` does, when it reaches the bad bytes.
    """
    _check_counts(view, limits)
    data = decompress(view.codec, view.data[HEADER_BYTES:], limits)
    if view.record_count * RECORD_BYTES_MIN > len(data):
        raise MalformedBatch(f"{view.record_count} records do not fit in {len(data)} bytes")
    yield from _decode(data, view, limits)


def _check_counts(view: BatchView, limits: RecordLimits) -> None:
    count, last = view.record_count, view.last_offset_delta
    if last < 0:
        raise MalformedBatch(f"the last record cannot be {-last} before the first")
    if not 0 <= count <= last + 1:
        raise MalformedBatch(f"{count} records cannot end at offset delta {last}")
    if count > limits.records_max:
        raise OversizedBatch(f"a batch may hold {limits.records_max} records, this has {count}")


def _decode(data: bytes, view: BatchView, limits: RecordLimits) -> Iterator[Record]:
    # Fields are not checked against the end of their record: a truncated slice still advances the
    # position by its full length, so either the check at the end of the record or of the batch
    # fails, or the next number lies beyond the end.
    base_offset, base_timestamp_ms = view.base_offset, view.base_timestamp_ms
    appended_ms = view.max_timestamp_ms if view.is_log_append_time else None
    last_delta = view.last_offset_delta
    headers_left = limits.headers_max
    previous_delta = -1
    position = 0
    for _ in range(view.record_count):
        length, position = read_varint(data, position)
        end = position + length
        # No attribute bit of a record has a meaning yet: skipped, as Kafka does.
        timestamp_delta, position = read_varlong(data, position + 1)
        offset_delta, position = read_varint(data, position)
        key, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        header_count, position = read_varint(data, position)
        headers: _Headers = ()
        if header_count:
            headers_left -= header_count
            if headers_left < 0:
                raise OversizedBatch(f"a batch may hold {limits.headers_max} headers in all")
            headers, position = _read_headers(data, position, header_count)
        if position != end:
            raise MalformedBatch(f"a record of {length} bytes ends {position - end:+} bytes off")
        if not previous_delta < offset_delta <= last_delta:
            raise MalformedBatch(
                f"offset delta {offset_delta} cannot follow {previous_delta} up to {last_delta}"
            )
        previous_delta = offset_delta
        timestamp_ms = base_timestamp_ms + timestamp_delta if appended_ms is None else appended_ms
        if not -_TIMESTAMP_END <= timestamp_ms < _TIMESTAMP_END:
            raise MalformedBatch(f"the timestamp {timestamp_ms} does not fit into 64 bits")
        yield Record(
            offset=base_offset + offset_delta,
            timestamp_ms=timestamp_ms,
            key=key,
            value=value,
            headers=headers,
        )
    if position != len(data):
        raise MalformedBatch(f"the records end at byte {position} of {len(data)}")


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length >= 0:
        end = position + length
        return data[position:end], end
    if length != -1:
        raise MalformedBatch(f"a key or value cannot have {length} bytes")
    return None, position


def _read_headers(data: bytes, position: int, count: int) -> tuple[_Headers, int]:
    if count < 0:
        raise MalformedBatch(f"a record cannot have {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise MalformedBatch("a header must have a key")
        value, position = _read_bytes(data, position)
        try:
            headers.append((key.decode(), value))
        except UnicodeDecodeError:
            raise MalformedBatch("a header's key is not UTF-8") from None
    return tuple(headers), position
