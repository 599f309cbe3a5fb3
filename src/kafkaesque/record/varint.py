"""Variable-length numbers in records: zigzag, then seven bits per byte, lowest first.

Zigzag folds the sign into the lowest bit (0, -1, 1, -2 become 0, 1, 2, 3), so small numbers of
either sign are short. A *varint* has 32 bits and takes at most 5 bytes, a *varlong* has 64 bits and
takes at most 10. Longer encodings than needed are accepted, as in Kafka's own clients.
"""

from kafkaesque.record.errors import MalformedBatch
from kafkaesque.types import Buffer

_VARINT_BITS = 32
_VARLONG_BITS = 64


def write_varint(out: bytearray, value: int) -> None:
    """Append `value`, which must fit into 32 signed bits."""
    assert -(1 << 31) <= value < 1 << 31, "a varint holds 32 bits"
    _write(out, value)


def write_varlong(out: bytearray, value: int) -> None:
    """Append `value`, which must fit into 64 signed bits."""
    assert -(1 << 63) <= value < 1 << 63, "a varlong holds 64 bits"
    _write(out, value)


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Return the 32-bit number at `position` and the position after it."""
    try:
        byte = data[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        return _read_long(data, position, _VARINT_BITS)
    except IndexError:
        raise MalformedBatch("the records end inside a number") from None


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Return the 64-bit number at `position` and the position after it."""
    try:
        byte = data[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        return _read_long(data, position, _VARLONG_BITS)
    except IndexError:
        raise MalformedBatch("the records end inside a number") from None


def _write(out: bytearray, value: int) -> None:
    folded = value << 1 if value >= 0 else (~value << 1) | 1
    # Terminates: each iteration takes seven bits off a number of at most 64.
    while folded >= 0x80:
        out.append((folded & 0x7F) | 0x80)
        folded >>= 7
    out.append(folded)


def _read_long(data: Buffer, position: int, bits: int) -> tuple[int, int]:
    folded = 0
    for shift in range(0, bits, 7):
        byte = data[position]
        position += 1
        folded |= (byte & 0x7F) << shift
        if byte < 0x80:
            if folded >> bits:
                raise MalformedBatch(f"a number does not fit into {bits} bits")
            return (folded >> 1) ^ -(folded & 1), position
    raise MalformedBatch(f"a number of {bits} bits takes too many bytes")
