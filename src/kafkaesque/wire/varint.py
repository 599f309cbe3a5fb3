"""Unsigned variable-length integers: seven bits a byte, the lowest first."""

from kafkaesque.errors import MalformedFrame
from kafkaesque.types import Buffer

BYTES_MAX = 5
"""Every length and tag is below 2**32."""

_ONE_BYTE = tuple(bytes([value]) for value in range(128))


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Return a value and the position after it; IndexError if the data ends within it."""
    value = 0
    for index in range(BYTES_MAX):
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> 32:
                break
            return value, position + index + 1
    raise MalformedFrame(f"the length at byte {position} exceeds 32 bits")


def write_varint(value: int) -> bytes:
    """Return the bytes of a non-negative value."""
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 128:  # ends: the value shrinks by seven bits each time
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
