"""The interface of the clients under test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

SECONDS_MAX = 60
"""Nothing in these tests takes longer, even on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One record to send."""

    value: bytes
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One record as a consumer received it."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class Producer(Protocol):
    """A producer that stays open."""

    def send(self, topic: str, records: Sequence[Sent]) -> None:
        """Send, and return when all are acknowledged with acks=all; fails if one is not."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class Member(Protocol):
    """A member of a consumer group that polls on its own until it is closed."""

    @property
    def seen(self) -> Sequence[Seen]:
        """What it has received so far."""
        ...

    @property
    def assigned(self) -> set[int]:
        """The partitions that are assigned to it now."""
        ...

    def close(self) -> None:
        """Commit what it received and leave."""
        ...


class Does(StrEnum):
    """Capabilities of clients; the wording is that of the client matrix."""

    PRODUCE = "produce and consume with every codec, keys and headers"
    BIG = "messages of 900 KB"
    TIME = "read from a time on"
    IDEMPOTENT = "idempotent producers"
    RECONNECT = "go on after the broker was killed and started again"
    GROUP = "consumer groups that rebalance while records are produced"
    COMMIT = "committed offsets that survive a kill"
    ADMIN = "create, describe, change and delete topics"


class Client(Protocol):
    """One client library or program."""

    name: str
    does: frozenset[Does]

    def producer(self, bootstrap: str, *, codec: str, is_idempotent: bool) -> Producer:
        """Open a producer."""
        ...

    def read(
        self, bootstrap: str, topic: str, *, count: int, from_ms: int | None = None
    ) -> list[Seen]:
        """Read `count` records of partition 0, from its start or from a timestamp on."""
        ...

    def join(self, bootstrap: str, topic: str, group: str) -> Member:
        """Become a member of a group that reads a topic from its start."""
        ...

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, settings: Mapping[str, str]
    ) -> None:
        """Create a topic."""
        ...

    def settings(self, bootstrap: str, topic: str) -> dict[str, str]:
        """Return all settings of a topic, defaults included."""
        ...

    def change_setting(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        """Set one setting and leave the others alone."""
        ...

    def add_partitions(self, bootstrap: str, topic: str, partitions: int) -> None:
        """Raise a topic's number of partitions."""
        ...

    def topics(self, bootstrap: str) -> set[str]:
        """Return the names of all topics."""
        ...

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """Delete a topic."""
        ...
