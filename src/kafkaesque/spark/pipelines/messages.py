"""The output of the generators of test data."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Generic[T]):
    """A record to send, and the truth behind it: None if it is deliberately broken."""

    key: str
    value: str | None
    event: T | None
    to: str = "topic"
    """The setting that holds its topic."""


def is_broken(chance: random.Random, share: float) -> bool:
    """Return whether the next message should be broken."""
    return chance.random() < share


def broken(chance: random.Random, key: str, texts: Sequence[str]) -> Message[T]:
    """Return a message that a pipeline must put aside."""
    return Message(key=key, value=chance.choice(texts), event=None)
