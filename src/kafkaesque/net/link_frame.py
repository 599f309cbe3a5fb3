"""The frame of a link: a length, the length of a head, the head as msgpack, and a body."""

from collections.abc import Sequence
from struct import Struct

import msgspec

from kafkaesque.types import Buffer

HEAD_LENGTH = Struct(">I")
_LENGTHS = Struct(">II")
_ENCODE = msgspec.msgpack.Encoder().encode


def frame(head: tuple[object, ...], body: Sequence[Buffer] = ()) -> list[Buffer]:
    """Return the parts of a frame; the body's parts are not copied."""
    packed = _ENCODE(head)
    size = HEAD_LENGTH.size + len(packed)
    if not body:
        return [_LENGTHS.pack(size, len(packed)) + packed]
    return [_LENGTHS.pack(size + sum(map(len, body)), len(packed)) + packed, *body]
