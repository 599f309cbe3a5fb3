"""One record as a program sees it, and helpers for any client's headers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkaesque.types import Offset

if TYPE_CHECKING:
    from confluent_kafka import Message as ClientMessage

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Data: TypeAlias = bytes | str | None
"""A key or value that a program may pass; text is sent as UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One record and its position."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def text(self) -> str:
        """The value as text; invalid bytes are replaced, and no value is empty text."""
        return (self.value or b"").decode(errors="replace")


def from_client(raw: "ClientMessage") -> Message:
    """Return confluent-kafka's message as our value; errors are not messages."""
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
    """Return the headers of a message from confluent-kafka, which are a list or None."""
    return tuple(raw) if raw else ()


def last_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> bytes | None:
    """Return the last value of a name, as Kafka's own clients do; None if there is none.

    To look up many names, first make a `dict` of the headers.
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
    """Return a header as text; None if it is missing or not UTF-8."""
    value = last_header(headers, name)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def int_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> int | None:
    """Return a header as a non-negative number; None if it is missing or not one of ours."""
    value = last_header(headers, name)
    # Bound the length first: the header may be foreign, and int() of digits is quadratic.
    return int(value) if value and len(value) <= 18 and value.isdigit() else None


def to_bytes(data: Data) -> bytes | None:
    """Return the bytes to send for a key or value."""
    return data.encode() if isinstance(data, str) else data
