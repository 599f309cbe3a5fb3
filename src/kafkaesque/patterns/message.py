"""One record as a program sees it, and what any client's headers may look like."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkaesque.types import Offset

if TYPE_CHECKING:
    from confluent_kafka import Message as ClientMessage

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Data: TypeAlias = bytes | str | None
"""What a program may give as a key or a value; text is sent as UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One record and where it lies."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def text(self) -> str:
        """The value as text; bytes that are none are replaced, and no value is no text."""
        return (self.value or b"").decode(errors="replace")


def from_client(raw: "ClientMessage") -> Message:
    """Return a message of confluent-kafka as a value of ours; errors are not messages."""
    topic, partition, offset = raw.topic(), raw.partition(), raw.offset()
    assert raw.error() is None and topic is not None and partition is not None
    assert offset is not None
    return Message(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=raw.timestamp()[1],
        key=raw.key(),
        value=raw.value(),
        headers=to_headers(raw.headers()),
    )


def to_headers(raw: Any) -> Headers:
    """Return the headers of a message that confluent-kafka read, which are a list or None."""
    return tuple(raw) if raw else ()


def last_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> bytes | None:
    """Return the last value under a name, as Kafka's own clients do; None if there is none.

    Who asks for many names makes a `dict` of the headers first.
    """
    if isinstance(headers, dict):
        found: bytes | None = headers.get(name)
        return found
    assert isinstance(headers, tuple)
    for key, value in reversed(headers):
        if key == name:
            return value
    return None


def text_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> str | None:
    """Return a header as text; None if it is missing or no UTF-8."""
    value = last_header(headers, name)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def int_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> int | None:
    """Return a header as a number that is not negative; None if it is missing or not ours."""
    value = last_header(headers, name)
    # The length is bounded first: a header is a stranger's, and int() of digits is quadratic.
    return int(value) if value and len(value) <= 18 and value.isdigit() else None


def to_bytes(data: Data) -> bytes | None:
    """Return what a program gave as the bytes that are sent."""
    return data.encode() if isinstance(data, str) else data
