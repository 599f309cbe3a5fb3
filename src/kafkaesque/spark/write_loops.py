"""The compiled loops of the sink: partitions of keys, and columns back into records."""

from typing import Any

import numpy as np

from kafkaesque.spark.compiled import compiled, copy_bytes, inlined

_SEED = 0x9747B28C
_M = np.uint32(0x5BD1E995)


@compiled
def partitions_of_keys(data: Any, places: Any, partitions: int, out: Any) -> None:
    """Fill in the partition of each row that has a key, as `record.key_partition` does."""
    for row in range(places.shape[0]):
        length = places[row, 1]
        if length < 0 or out[row] >= 0:
            continue
        start = places[row, 0]
        hashed = np.uint32(_SEED) ^ np.uint32(length)
        whole = length & ~3
        for at in range(start, start + whole, 4):
            word = np.uint32(data[at])
            word |= np.uint32(data[at + 1]) << np.uint32(8)
            word |= np.uint32(data[at + 2]) << np.uint32(16)
            word |= np.uint32(data[at + 3]) << np.uint32(24)
            word = np.uint32(word * _M)
            word = np.uint32((word ^ (word >> np.uint32(24))) * _M)
            hashed = np.uint32(np.uint32(hashed * _M) ^ word)
        if whole < length:
            rest = np.uint32(0)
            for at in range(length - whole):
                rest |= np.uint32(data[start + whole + at]) << np.uint32(8 * at)
            hashed = np.uint32((hashed ^ rest) * _M)
        hashed = np.uint32((hashed ^ (hashed >> np.uint32(13))) * _M)
        hashed = np.uint32(hashed ^ (hashed >> np.uint32(15)))
        out[row] = np.int64(hashed & np.uint32(0x7FFFFFFF)) % partitions


@inlined
def _put(out: Any, at: int, value: int) -> int:
    """Write a number zigzag, seven bits per byte; return the position after it."""
    folded = np.uint64(value << 1) ^ np.uint64(value >> 63)
    while folded >= np.uint64(0x80):
        out[at] = np.uint8(folded & np.uint64(0x7F)) | np.uint8(0x80)
        folded >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(folded)
    return at + 1


@inlined
def _size(value: int) -> int:
    """Return how many bytes `_put` writes."""
    folded = np.uint64(value << 1) ^ np.uint64(value >> 63)
    size = 1
    while folded >= np.uint64(0x80):
        folded >>= np.uint64(7)
        size += 1
    return size


@inlined
def _field_size(length: int) -> int:
    return _size(length) + max(length, 0)


@inlined
def _put_field(out: Any, at: int, data: Any, start: int, length: int) -> int:
    at = _put(out, at, length)
    if length > 0:
        copy_bytes(out, at, data, start, length)
        at += length
    return at


@compiled
def encode_rows(
    rows: Any, keys: Any, values: Any, headers: Any, header_keys: Any, header_values: Any, out: Any
) -> int:
    """Write rows as the records of one batch and return their size in bytes.

    `rows` are the rows' numbers and timestamp deltas. Keys and values, of rows and of headers, are
    pairs of data and positions; `headers` has the first header of each row and of the row after
    the last. `out` must be large enough.
    """
    numbers, time_deltas = rows
    key_data, key_places = keys
    value_data, value_places = values
    header_key_data, header_key_places = header_keys
    header_value_data, header_value_places = header_values
    at = 0
    for delta in range(numbers.shape[0]):
        row = numbers[delta]
        time_delta = time_deltas[delta]
        key_length, value_length = key_places[row, 1], value_places[row, 1]
        first, last = headers[row], headers[row + 1]
        size = (
            1
            + _size(time_delta)
            + _size(delta)
            + _field_size(key_length)
            + _field_size(value_length)
        )
        size += _size(last - first)
        for header in range(first, last):
            size += _field_size(header_key_places[header, 1])
            size += _field_size(header_value_places[header, 1])
        at = _put(out, at, size)
        out[at] = 0
        at = _put(out, at + 1, time_delta)
        at = _put(out, at, delta)
        at = _put_field(out, at, key_data, key_places[row, 0], key_length)
        at = _put_field(out, at, value_data, value_places[row, 0], value_length)
        at = _put(out, at, last - first)
        for header in range(first, last):
            places = header_key_places
            at = _put_field(out, at, header_key_data, places[header, 0], places[header, 1])
            places = header_value_places
            at = _put_field(out, at, header_value_data, places[header, 0], places[header, 1])
    return at
