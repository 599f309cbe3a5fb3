"""The loops over records: from a batch's payload to columns, and from columns to a payload.

Reading goes in two steps. `scan` walks the records and notes where each field lies, checking all
that `kafkaesque.record.read` checks; then the fields are gathered column by column. Everything here
is compiled and works on arrays, so places of fields are numbers and errors are codes below zero.
"""

from typing import Any

import numpy as np

from kafkaesque.spark.compiled import compiled, copy_bytes, inlined

MALFORMED = -1
"""What `scan` returns for bytes that contradict themselves; the plain reader can say why."""

NO_APPEND_TIME = np.iinfo(np.int64).min
"""In a batch's row of the table: each record has its own timestamp."""

_US_MAX = np.iinfo(np.int64).max // 1000
_VARINT_SHIFT_MAX = 28
_VARLONG_SHIFT_MAX = 63


@inlined
def _varlong(data: Any, position: int, end: int, shift_max: int) -> tuple[int, int]:
    """Return a number and the position behind it; a position of -1 if there is no number."""
    folded = np.uint64(0)
    shift = 0
    while shift <= shift_max:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        bits = np.uint64(byte & 0x7F)
        if shift == shift_max and byte >> (4 if shift_max == _VARINT_SHIFT_MAX else 1):
            return 0, -1  # more bits than the number may have
        folded |= bits << np.uint64(shift)
        if byte < 0x80:
            value = np.int64(folded >> np.uint64(1)) ^ -np.int64(folded & np.uint64(1))
            return value, position
        shift += 7
    return 0, -1


@compiled
def scan(
    data: Any, table: Any, window: Any, numbers: Any, places: Any, header_places: Any
) -> tuple[int, int]:
    """Note the offset, time and fields of every record that lies in the window of offsets.

    `table` has a row for each batch: start and end of its payload in `data`, base offset, last
    offset delta, base timestamp, append time, count. `numbers` gets offset, time in microseconds
    and timestamp type; `places` start and length of key and value (-1 for none), and first and
    number of headers; `header_places` start and length of the key and value of each header.
    Returns how many records and headers were noted, or MALFORMED.
    """
    rows = 0
    headers = 0
    for batch in range(table.shape[0]):
        position, end = table[batch, 0], table[batch, 1]
        base_offset, last_delta = table[batch, 2], table[batch, 3]
        base_ms, append_ms, count = table[batch, 4], table[batch, 5], table[batch, 6]
        previous = np.int64(-1)
        for _ in range(count):
            length, position = _varlong(data, position, end, _VARINT_SHIFT_MAX)
            if position < 0 or length < 1 or length > end - position:
                return MALFORMED, 0
            record_end = position + length
            delta_ms, position = _varlong(data, position + 1, record_end, _VARLONG_SHIFT_MAX)
            if position < 0:
                return MALFORMED, 0
            delta, position = _varlong(data, position, record_end, _VARINT_SHIFT_MAX)
            if position < 0 or delta <= previous or delta > last_delta:
                return MALFORMED, 0
            previous = delta
            key_length, position = _varlong(data, position, record_end, _VARINT_SHIFT_MAX)
            if position < 0 or key_length < -1 or key_length > record_end - position:
                return MALFORMED, 0
            key_at = position
            position += max(key_length, 0)
            value_length, position = _varlong(data, position, record_end, _VARINT_SHIFT_MAX)
            if position < 0 or value_length < -1 or value_length > record_end - position:
                return MALFORMED, 0
            value_at = position
            position += max(value_length, 0)
            header_count, position = _varlong(data, position, record_end, _VARINT_SHIFT_MAX)
            # A header takes two bytes at least.
            if position < 0 or header_count < 0 or header_count > (record_end - position) // 2:
                return MALFORMED, 0
            offset = base_offset + delta
            is_wanted = window[0] <= offset < window[1]
            first_header = headers
            for _ in range(header_count):
                length, position = _varlong(data, position, record_end, _VARINT_SHIFT_MAX)
                if position < 0 or length < 0 or length > record_end - position:
                    return MALFORMED, 0
                header_key_at, header_key_length = position, length
                position += length
                length, position = _varlong(data, position, record_end, _VARINT_SHIFT_MAX)
                if position < 0 or length < -1 or length > record_end - position:
                    return MALFORMED, 0
                if is_wanted and header_places.shape[0] > 0:
                    header_places[headers, 0] = header_key_at
                    header_places[headers, 1] = header_key_length
                    header_places[headers, 2] = position
                    header_places[headers, 3] = length
                    headers += 1
                position += max(length, 0)
            if position != record_end:
                return MALFORMED, 0
            if is_wanted:
                at_ms = base_ms + delta_ms if append_ms == NO_APPEND_TIME else append_ms
                if append_ms == NO_APPEND_TIME and (at_ms < base_ms) != (delta_ms < 0):
                    return MALFORMED, 0  # it does not fit into 64 bits
                numbers[rows, 0] = offset
                numbers[rows, 1] = min(max(at_ms, -_US_MAX), _US_MAX) * 1000
                numbers[rows, 2] = append_ms != NO_APPEND_TIME
                places[rows, 0] = key_at
                places[rows, 1] = key_length
                places[rows, 2] = value_at
                places[rows, 3] = value_length
                places[rows, 4] = first_header
                places[rows, 5] = headers - first_header
                rows += 1
        if position != end:
            return MALFORMED, 0
    return rows, headers


@compiled
def measure(places: Any, column: int, rows: int, offsets: Any, is_there: Any) -> int:
    """Fill in where each field of a column will begin, and whether there is one; return the sum."""
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
    """Copy the fields of a column one behind the other."""
    at = np.int64(0)
    for row in range(rows):
        length = places[row, column + 1]
        if length > 0:
            copy_bytes(out, at, data, places[row, column], length)
            at += length
