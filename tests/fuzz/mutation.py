"""Frames with a few of their bytes changed, cut out, inserted, or taken from another frame."""

import random
import struct
from collections.abc import Sequence

_NASTY_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)
_NASTY_NUMBERS = (
    *(struct.pack(">i", number) for number in (-1, 0, 1, -(2**31), 2**31 - 1, 2**24, 65_536)),
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
)
CHANGES_MAX = 4


def mutate(body: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return a slightly changed request, without its length."""
    data = bytearray(body)
    for _ in range(chance.randint(1, CHANGES_MAX)):
        if not data:
            break
        place = chance.randrange(len(data))
        match chance.randrange(7):
            case 0:
                data[place] ^= 1 << chance.randrange(8)
            case 1:
                data[place] = chance.choice(_NASTY_BYTES)
            case 2:
                del data[place:]
            case 3:
                del data[place : place + chance.choice((1, 2, 4, 20))]
            case 4:
                data[place:place] = chance.randbytes(chance.choice((1, 2, 4, 20)))
            case 5:
                number = chance.choice(_NASTY_NUMBERS)
                data[place : place + len(number)] = number
            case _:
                other = chance.choice(others)
                cut = chance.randrange(len(other))
                data[place:] = other[cut : cut + 2_000]
    return bytes(data)


def garbage(chance: random.Random) -> bytes:
    """Return what a stranger might send to an open port."""
    lead = chance.choice(
        (
            b"",
            b"\0",
            b"\xff\xfb",
            b"\r\n",
            b"GET ",
            b"PUBS ",
            b"HELP\r\n",
            b"\x16\x03\x01",
            b"SUBS a",
        )
    )
    return lead + chance.randbytes(chance.choice((1, 5, 60, 3_000)))


def text_lines(names: Sequence[str], chance: random.Random) -> bytes:
    """Return commands of the text protocol with nasty words in them."""
    lines = []
    for _ in range(chance.randint(1, 12)):
        words = [chance.choice(_TEXT_COMMANDS)]
        words += [chance.choice(_TEXT_WORDS + tuple(names)) for _ in range(chance.randrange(4))]
        lines.append(" ".join(words).encode() + chance.choice((b"\r\n", b"\n", b"\r\0", b"")))
    return b"".join(lines)


_TEXT_COMMANDS = ("CRTP", "PUBS", "SUBS", "CONS", "PUSH", "STOP", "LIST", "HELP", "subs", "", "GET")
_TEXT_WORDS = (
    *("plain", "packed", "g1", "1", "0", "-1", "32768", str(2**63), "s1", "s2", '"', '"a b"', "☃"),
    *(
        '{"Body":"x"}',
        '{"Key":1,"Body":null}',
        '{"Body":' + "[" * 2_000,
        '{"Body":"\\ud800"}',
        "{}",
    ),
)
