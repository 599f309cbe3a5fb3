"""A machine's state as bytes, written and read in slices (`docs/reference/format-snapshot.md`).

    state = [1, [[key, value or nil] …]]        one msgpack array

A library would handle all of it at once, which takes tens of milliseconds for a large state.
"""

import struct
from collections.abc import Iterable, Iterator

import msgspec

from kafkaesque.machines.machine import MachineRecord
from kafkaesque.slices import Sliced

FORMAT = 1

_PAIR, _NIL = 0x92, 0xC0
_HEAD = struct.Struct(">BBBI")
"""An array of two: the format, and the array of records."""

_COUNTS = {0xDC: struct.Struct(">H"), 0xDD: struct.Struct(">I")}
_LENGTHS = {0xC4: struct.Struct(">B"), 0xC5: struct.Struct(">H"), 0xC6: struct.Struct(">I")}
"""The size field that follows the first byte of a long array, or of a byte string."""

_encoder = msgspec.msgpack.Encoder()


class UnknownState(ValueError):
    """The bytes are not a state that this version knows."""


def encoding(records: Iterable[MachineRecord], slice_bytes: int) -> Sliced[list[bytearray]]:
    """Return the state in pieces of about a slice; the records must not change meanwhile."""
    piece = bytearray(_HEAD.size)
    pieces = [piece]
    count = 0
    for record in records:
        if len(piece) >= slice_bytes:
            yield
            piece = bytearray()
            pieces.append(piece)
        _encoder.encode_into(record, piece, -1)
        count += 1
    _HEAD.pack_into(pieces[0], 0, _PAIR, FORMAT, 0xDD, count)
    return pieces


def decoding(state: bytes | bytearray, slice_bytes: int) -> Iterator[list[MachineRecord]]:
    """Return the records of a state, a slice at a time; raises UnknownState."""
    records = []
    try:
        if (state[0], state[1]) != (_PAIR, FORMAT):
            raise UnknownState(f"its format is not {FORMAT}")
        count, position = _count(state, 2)
        slice_end = slice_bytes
        for _ in range(count):
            if state[position] != _PAIR:
                raise UnknownState("a record is a key and a value")
            key, position = _bytes(state, position + 1)
            if state[position] == _NIL:
                value, position = None, position + 1
            else:
                value, position = _bytes(state, position)
            records.append(MachineRecord(key, value))
            if position >= slice_end:
                slice_end = position + slice_bytes
                yield records
                records = []
    except (IndexError, KeyError, struct.error) as error:
        raise UnknownState("it is truncated or malformed") from error
    if position != len(state):
        raise UnknownState("it does not end with its last record")
    yield records


def _count(state: bytes | bytearray, position: int) -> tuple[int, int]:
    kind = state[position]
    if kind & 0xF0 == 0x90:
        return kind & 0x0F, position + 1
    number = _COUNTS[kind]
    return number.unpack_from(state, position + 1)[0], position + 1 + number.size


def _bytes(state: bytes | bytearray, position: int) -> tuple[bytes, int]:
    number = _LENGTHS[state[position]]
    start = position + 1 + number.size
    end = start + number.unpack_from(state, position + 1)[0]
    return bytes(state[start:end]), end
