"""The partitions assigned to a consumer group member, in the format that consumers agree on.

    assignment = version:int16 topics:int32 * (name:string partitions:int32 * int32) user data

Brokers pass these bytes on unread. Other kinds of groups put other things there, so bytes in
another format count as no partitions.
"""

import struct

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def decode_assignment(data: bytes) -> tuple[tuple[str, int], ...]:
    """Return the partitions, by topic and number; none if the bytes have another format."""
    try:
        return tuple(sorted(_decode(data)))
    except (struct.error, UnicodeDecodeError):
        return ()


def _decode(data: bytes) -> list[tuple[str, int]]:
    places: list[tuple[str, int]] = []
    (topics,) = _INT32.unpack_from(data, _INT16.size)
    position = _INT16.size + _INT32.size
    for _ in range(topics):  # ends at the end of the bytes at the latest: unpacking raises
        (length,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        if length < 0:
            raise struct.error("a topic without a name")
        name = data[position : position + length].decode()
        position += length
        (count,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        for _ in range(count):
            places.append((name, *_INT32.unpack_from(data, position)))
            position += _INT32.size
    return places
