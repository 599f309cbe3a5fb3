"""One record as a program sees it, and what any client's headers may look like."""

from collections.abc import Iterable, Mapping
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
    """Return headers as confluent-kafka gives them (a list, a dict or None) as pairs."""
    if not raw:
        return ()
    pairs: Iterable[tuple[str, Any]] = raw.items() if isinstance(raw, dict) else raw
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in pairs
    )


def last_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> bytes | None:
    """Return the last value under a name, as Kafka's own clients do; None if there is none.

    Who asks for many names makes a `dict` of the headers first.
    """
    if isinstance(headers, dict):
        found = headers.get(name)
        assert found is None or isinstance(found, bytes)
        return found
    assert isinstance(headers, tuple)
    return next((value for key, value in reversed(headers) if key == name), None)


def text_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> str | None:
    """Return a header as text; None if it is missing or no UTF-8."""
    value = last_header(headers, name)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def int_header(headers: "Headers | Mapping[str, bytes | None]", name: str) -> int | None:
    """Return a header as a number that is not negative; None if it is missing or not ours."""
    text = text_header(headers, name)
    # The length is bounded first: a header is a stranger's, and int() of digits is quadratic.
    return int(text) if text and len(text) <= 18 and text.isascii() and text.isdigit() else None


def to_bytes(data: Data) -> bytes | None:
    """Return what a program gave as the bytes that are sent."""
    return data.encode() if isinstance(data, str) else data
