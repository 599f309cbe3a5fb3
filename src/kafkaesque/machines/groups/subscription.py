"""Which topics a consumer subscribes to, decoded from its metadata when it joins.

To a classic group a member's metadata and assignment are opaque. For members of the protocol type
`consumer` they are Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment, which in
every version start with

    version:int16 topics:[string] user_data:bytes owned:[topic:string [int32]] (since version 1)
    version:int16 assigned:[topic:string [int32]] user_data:bytes
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

CONSUMER = "consumer"
"""The protocol type whose metadata can be decoded."""

OWNED_SINCE = 1

_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_NO_USER_DATA = struct.pack(">i", -1)

NamedPlaces = frozenset[tuple[str, int]]


class Subscription(NamedTuple):
    """What a consumer wants, and what it reports to read already."""

    topics: frozenset[str]
    owned: NamedPlaces


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """Return the topics, or None for metadata in another format."""
    try:
        return _Cursor(metadata).topics()
    except (struct.error, ValueError):
        return None


def subscription_of(metadata: bytes) -> Subscription | None:
    """Return topics and owned partitions, or None for metadata in another format."""
    cursor = _Cursor(metadata)
    try:
        topics = cursor.topics()
        if cursor.version < OWNED_SINCE:
            return Subscription(topics, frozenset())
        cursor.user_data()
        return Subscription(topics, cursor.places())
    except (struct.error, ValueError):
        return None


def assigned_of(assignment: bytes) -> NamedPlaces | None:
    """Return the partitions assigned to a consumer, or None if not all of it can be decoded.

    No bytes mean no partitions. Data that an assignor adds for itself cannot be decoded.
    """
    if not assignment:
        return frozenset()
    cursor = _Cursor(assignment)
    try:
        places = cursor.places()
        return None if cursor.user_data() else places
    except (struct.error, ValueError):
        return None


class _Cursor:
    """Reads one item after the other; raises struct.error or ValueError when data is missing.

    Each item of a list takes at least two bytes, so a false count cannot make this long.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = _LENGTH.size
        self.version = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else -1

    def topics(self) -> frozenset[str]:
        return frozenset([self._text() for _ in range(self._count())])

    def places(self) -> NamedPlaces:
        found = []
        for _ in range(self._count()):
            topic = self._text()
            found += [(topic, self._next(_COUNT)) for _ in range(self._count())]
        return frozenset(found)

    def user_data(self) -> bytes:
        return self._bytes(max(self._next(_COUNT), 0))

    def _count(self) -> int:
        count = self._next(_COUNT)
        if self.version < 0 or count < 0:
            raise ValueError("not written by a consumer")
        return count

    def _text(self) -> str:
        return self._bytes(self._next(_LENGTH)).decode()

    def _bytes(self, length: int) -> bytes:
        start, self._position = self._position, self._position + length
        if length < 0 or self._position > len(self._data):
            raise ValueError("cut short")
        return self._data[start : self._position]

    def _next(self, kind: struct.Struct) -> int:
        (number,) = kind.unpack_from(self._data, self._position)
        self._position += kind.size
        assert isinstance(number, int)
        return number


def is_same_subscription(protocol_type: str, old: bytes, new: bytes) -> bool:
    """Return whether a rejoining member wants the same as before.

    Consumers also report what they currently own, which does not change what they want.
    """
    if protocol_type == CONSUMER:
        old_topics, new_topics = topics_of(old), topics_of(new)
        if old_topics is not None and new_topics is not None:
            return old_topics == new_topics
    return old == new


def encode_subscription(topics: Collection[str]) -> bytes:
    """Return the metadata of a consumer of these topics, in the oldest version."""
    return _HEAD.pack(0, len(topics)) + b"".join(map(_string, topics)) + _NO_USER_DATA


def encode_assignment(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """Return an assignment for a consumer, in the oldest version."""
    parts = [_HEAD.pack(0, len(partitions))]
    for topic, indexes in partitions.items():
        parts += [_string(topic), struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)]
    return b"".join(parts) + _NO_USER_DATA


def _string(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data
