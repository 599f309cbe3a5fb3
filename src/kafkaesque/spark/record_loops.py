"""The loops over records: from a batch's payload to columns, and from columns to a payload.

Reading takes two steps. `scan` walks the records and notes the position of each field, with all
checks of `kafkaesque.record.read`; then the fields are gathered column by column. Everything here
is compiled and works on arrays, so positions of fields are numbers and errors are negative codes.
"""

from typing import Any

import numpy as np

from kafkaesque.spark.compiled import compiled, copy_bytes, inlined

MALFORMED = -1
"""What `scan` returns for inconsistent bytes; the plain reader can give the reason."""

NO_APPEND_TIME = np.iinfo(np.int64).min
"""In a batch's row of the table: the records have their own timestamps."""

_US_MAX = np.iinfo(np.int64).max // 1000
_VARINT_SHIFT_MAX = 28
_VARLONG_SHIFT_MAX = 63


@inlined
def _varlong(data: Any, position: int, end: int, shift_max: int) -> tuple[int, int]:
    """Return a number and the position after it; position -1 if there is no number."""
    folded = np.uint64(0)
    shift = 0
    while shift <= shift_max:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        bits = np.uint64(byte & 0x7F)
        if shift == shift_max and byte >> (4 if shift_max == _VARINT_SHIFT_MAX else 1):
            return 0, -1  # more bits than allowed
        folded |= bits << np.uint64(shift)
        if byte < 0x80:
            value = np.int64(folded >> np.uint64(1)) ^ -np.int64(folded & np.uint64(1))
            return value, position
        shift += 7
    return 0, -1


@inlined
def _field(data: Any, position: int, end: int, shortest: int) -> tuple[int, int, int]:
    """Return start and length of a field and the position after it; -1 if it does not fit."""
    length, start = _varlong(data, position, end, _VARINT_SHIFT_MAX)
    if start < 0 or length < shortest or length > end - start:
        return 0, 0, -1
    return start, length, start + max(length, 0)


@inlined
def _headers(data: Any, position: int, end: int, out: Any, first: int) -> tuple[int, int]:
    """Note a record's headers in `out` from row `first`, unless it has no rows.

    Returns their number and the position after them, -1 if they are malformed.
    """
    count, position = _varlong(data, position, end, _VARINT_SHIFT_MAX)
    # A header takes at least two bytes.
    if position < 0 or count < 0 or count > (end - position) // 2:
        return 0, -1
    for number in range(count):
        key_at, key_length, position = _field(data, position, end, 0)
        if position < 0:
            return 0, -1
        value_at, value_length, position = _field(data, position, end, -1)
        if position < 0:
            return 0, -1
        if out.shape[0] > 0:
            row = first + number
            out[row, 0], out[row, 1] = key_at, key_length
            out[row, 2], out[row, 3] = value_at, value_length
    return count, position


@inlined
def _deltas(data: Any, position: int, end: int) -> tuple[int, int, int]:
    """Return a record's time and offset deltas and the position after; -1 if malformed."""
    delta_ms, position = _varlong(data, position, end, _VARLONG_SHIFT_MAX)
    if position < 0:
        return 0, 0, -1
    delta, position = _varlong(data, position, end, _VARINT_SHIFT_MAX)
    return delta_ms, delta, position


@compiled
def scan(
    data: Any, table: Any, window: Any, numbers: Any, places: Any, header_places: Any
) -> tuple[int, int]:
    """Note the offset, time and fields of every record in the window of offsets.

    `table` has a row for each batch: start and end of its payload in `data`, base offset, last
    offset delta, base timestamp, append time, count. `numbers` gets offset, time in microseconds
    and timestamp type; `places` start and length of key and value (-1 for none) and the number of
    headers; `header_places`, unless it has no rows, start and length of each header's key and
    value. Returns how many records and headers were noted, or MALFORMED.
    """
    rows = 0
    headers = 0
    for batch in range(table.shape[0]):
        position, end = table[batch, 0], table[batch, 1]
        base_ms, append_ms = table[batch, 4], table[batch, 5]
        previous = np.int64(-1)
        for _ in range(table[batch, 6]):
            position, _, record_end = _field(data, position, end, 1)
            if record_end < 0:
                return MALFORMED, 0
            delta_ms, delta, position = _deltas(data, position + 1, record_end)
            if position < 0 or delta <= previous or delta > table[batch, 3]:
                return MALFORMED, 0
            previous = delta
            key_at, key_length, position = _field(data, position, record_end, -1)
            if position < 0:
                return MALFORMED, 0
            value_at, value_length, position = _field(data, position, record_end, -1)
            if position < 0:
                return MALFORMED, 0
            count, position = _headers(data, position, record_end, header_places, headers)
            if position != record_end:
                return MALFORMED, 0
            at_ms = append_ms
            if append_ms == NO_APPEND_TIME:
                at_ms = base_ms + delta_ms
                if (at_ms < base_ms) != (delta_ms < 0):
                    return MALFORMED, 0  # it does not fit into 64 bits
            offset = table[batch, 2] + delta
            if window[0] <= offset < window[1]:
                numbers[rows, 0] = offset
                numbers[rows, 1] = min(max(at_ms, -_US_MAX), _US_MAX) * 1000
                numbers[rows, 2] = append_ms != NO_APPEND_TIME
                places[rows, 0], places[rows, 1] = key_at, key_length
                places[rows, 2], places[rows, 3] = value_at, value_length
                places[rows, 4] = count if header_places.shape[0] > 0 else 0
                headers += places[rows, 4]
                rows += 1
        if position != end:
            return MALFORMED, 0
    return rows, headers


@compiled
def measure(places: Any, column: int, rows: int, offsets: Any, is_there: Any) -> int:
    """Fill in where each field of a column starts, and whether it exists; return the sum."""
    total = np.int64(0)
    nulls = 0
    for row in range(rows):
        offsets[row] = total
        length = places[row, column + 1]
        if length >= 0:
            total += length
            is_there[row >> 3] |= np.uint8(1 << (row & 7))
        else:
            nulls += 1
    offsets[rows] = total
    return nulls


@compiled
def gather(data: Any, places: Any, column: int, rows: int, out: Any) -> None:
    """Copy the fields of a column one after another."""
    at = np.int64(0)
    for row in range(rows):
        length = places[row, column + 1]
        if length > 0:
            copy_bytes(out, at, data, places[row, column], length)
            at += length
