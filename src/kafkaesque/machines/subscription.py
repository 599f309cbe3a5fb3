"""Which topics a consumer subscribes to, read from what it says when it joins.

To a group the metadata of a member is opaque; for members of the protocol type `consumer` it is
Kafka's ConsumerProtocolSubscription, which begins, in every version, with

    version:int16 topics:[string]
"""

import struct
from collections.abc import Collection, Mapping, Sequence

CONSUMER = "consumer"
"""The protocol type of those whose metadata can be read."""

_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")
_NO_USER_DATA = struct.pack(">i", -1)


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """Return the topics, or None for metadata that is not what consumers write."""
    topics = []
    try:
        version, count = _HEAD.unpack_from(metadata)
        position = _HEAD.size
        # Every topic takes two bytes, so a count that lies cannot make this long.
        if version < 0 or not 0 <= count <= len(metadata) // _LENGTH.size:
            return None
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, position)
            position += _LENGTH.size + length
            if length < 0 or position > len(metadata):
                return None
            topics.append(metadata[position - length : position].decode())
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)


def is_same_subscription(protocol_type: str, old: bytes, new: bytes) -> bool:
    """Return whether a member that comes again wants what it wanted before.

    Consumers also write what they own at present, which says nothing of what they want.
    """
    if protocol_type == CONSUMER:
        old_topics, new_topics = topics_of(old), topics_of(new)
        if old_topics is not None and new_topics is not None:
            return old_topics == new_topics
    return old == new


def encode_subscription(topics: Collection[str]) -> bytes:
    """Return what a consumer of these topics would say of itself, in the oldest version."""
    return _HEAD.pack(0, len(topics)) + b"".join(map(_string, topics)) + _NO_USER_DATA


def encode_assignment(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """Return what a consumer would be told to read, in the oldest version."""
    parts = [_HEAD.pack(0, len(partitions))]
    for topic, indexes in partitions.items():
        parts += [_string(topic), struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)]
    return b"".join(parts) + _NO_USER_DATA


def _string(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data
