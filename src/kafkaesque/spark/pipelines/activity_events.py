"""Generates visitors of a shop from a seed: the events of the pipeline `activity`."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from kafkaesque.spark.pipelines.messages import Message, broken, is_broken
from kafkaesque.spark.pipelines.settings import PipelineSettings

KINDS = ("search", "click", "cart", "buy")
"""What a visitor can do, from the first step to the last."""

SECONDS_OF_A_WINDOW = 60
"""The window of a counter."""

_WEIGHTS = (35, 50, 10, 5)
_ITEMS = 200
_VISITORS = 60
_AT_ONCE = 8
_ARRIVAL_MS = 5 * 60_000
"""After this time four visitors leave and four others come."""
_PACE_MS = 4_000
_DISORDER_MS = 5_000
_BROKEN = ('{"user": "visitor-1", "kind"', '{"user":"visitor-1","kind":"stare","at":1}', "hello")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityTimes:
    """When a session ends, and how late events may arrive."""

    gap_s: int = 600
    """A session ends when its visitor does nothing for this long."""
    lateness_s: int = 60
    """Events that arrive later than this after others are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step of one visitor."""

    user: str
    kind: str
    item: str
    at_ms: int

    def to_json(self) -> str:
        """Return the record's value."""
        fields = {"user": self.user, "kind": self.kind, "item": self.item, "at": self.at_ms}
        return json.dumps(fields, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySettings(PipelineSettings):
    """The names of the topics, and the times."""

    topic: str = "clicks"
    sessions_topic: str = "activity-sessions"
    counters_topic: str = "activity-counters"
    dead_letter_topic: str = "activity-dead-letters"
    gap_s: int = ActivityTimes().gap_s
    lateness_s: int = ActivityTimes().lateness_s

    @property
    def times(self) -> ActivityTimes:
        """When a session ends, and how late events may arrive."""
        return ActivityTimes(gap_s=self.gap_s, lateness_s=self.lateness_s)


def generate(
    seed: int, count: int, start_ms: int, broken_share: float = 0.01
) -> Iterator[Message[Event]]:
    """Yield messages in almost rising order of time; the same seed yields the same messages."""
    chance = random.Random(seed)
    at_ms = start_ms
    for _ in range(count):
        at_ms += chance.randrange(_PACE_MS)
        if is_broken(chance, broken_share):
            yield broken(chance, "visitor-1", _BROKEN)
            continue
        arrived = (at_ms - start_ms) // _ARRIVAL_MS * (_AT_ONCE // 2)
        event = Event(
            user=f"visitor-{(arrived + chance.randrange(_AT_ONCE)) % _VISITORS}",
            kind=chance.choices(KINDS, _WEIGHTS)[0],
            item=f"item-{chance.randrange(_ITEMS)}",
            at_ms=at_ms - chance.randrange(_DISORDER_MS),
        )
        yield Message(key=event.user, value=event.to_json(), event=event)
