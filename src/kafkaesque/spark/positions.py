"""Which partitions a query reads, and where it starts and ends, according to its options.

Offsets are written as Spark's own connector writes them: `{"topic": {"partition": offset}}`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any

from kafkaesque.client.topics import EARLIEST, LATEST, Place
from kafkaesque.spark.errors import BadOption

_OFFSET_END = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """All partitions of the named topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """All partitions of all topics whose whole name matches a pattern."""

    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """Single partitions."""

    places: tuple[Place, ...]


Selection = Subscribed | Matching | Assigned


class Beginning(Enum):
    """How a position is given."""

    EARLIEST = auto()
    LATEST = auto()
    OFFSETS = auto()
    """By an offset for each partition."""
    TIMES = auto()
    """By a time for each partition."""
    TIME = auto()
    """By one time for all."""


class Missing(StrEnum):
    """What to do if no record is as late as the starting time."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where to start or end."""

    beginning: Beginning
    places: Mapping[Place, int] = field(default_factory=dict)
    time_ms: int = 0

    @property
    def is_at_latest(self) -> bool:
        """Whether it is at the end of any partition."""
        by_offset = self.beginning is Beginning.OFFSETS and LATEST in self.places.values()
        return self.beginning is Beginning.LATEST or by_offset

    @property
    def is_at_earliest(self) -> bool:
        """Whether it is at the start of any partition."""
        by_offset = self.beginning is Beginning.OFFSETS and EARLIEST in self.places.values()
        return self.beginning is Beginning.EARLIEST or by_offset

    def check_places(self, places: Iterable[Place], option: str) -> None:
        """Raise BadOption unless the position names either no partitions or exactly these."""
        if self.beginning not in (Beginning.OFFSETS, Beginning.TIMES):
            return
        wanted = set(places)
        for topic, partition in sorted(wanted - self.places.keys()):
            raise BadOption(f"{option} lacks partition {partition} of topic {topic}")
        for topic, partition in sorted(self.places.keys() - wanted):
            raise BadOption(
                f"{option} names partition {partition} of topic {topic}, which is not read"
            )


def parse_selection(*, subscribe: str | None, pattern: str | None, assign: str | None) -> Selection:
    """Return what a query reads; raises BadOption unless exactly one of the three is given."""
    given = {"subscribe": subscribe, "subscribePattern": pattern, "assign": assign}
    names = [name for name, text in given.items() if text is not None]
    if not names:
        raise BadOption("give one of subscribe, subscribePattern and assign")
    if len(names) > 1:
        raise BadOption(f"{names[0]} and {names[1]} contradict each other: give only one")
    if subscribe is not None:
        topics = tuple(sorted({part.strip() for part in subscribe.split(",") if part.strip()}))
        if not topics:
            raise BadOption("subscribe names no topic")
        return Subscribed(topics=topics)
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadOption(f"subscribePattern is not a regular expression: {error}") from error
        return Matching(pattern=pattern)
    assert assign is not None
    found = [
        (topic, _whole("assign", number, 0))
        for topic, numbers in _object("assign", assign).items()
        for number in (numbers if isinstance(numbers, list) else [None])
    ]
    if not found:
        raise BadOption("assign names no partition")
    return Assigned(places=tuple(sorted(set(found))))


def parse_position(option: str, text: str) -> Position:
    """Read `earliest`, `latest` or offsets."""
    match text.strip().lower():
        case "earliest":
            return Position(beginning=Beginning.EARLIEST)
        case "latest":
            return Position(beginning=Beginning.LATEST)
        case _:
            places = parse_places(option, text, smallest=EARLIEST)
            return Position(beginning=Beginning.OFFSETS, places=places)


def parse_places(option: str, text: str, smallest: int = 0) -> dict[Place, int]:
    """Read a number for each partition."""
    found: dict[Place, int] = {}
    for topic, numbers in _object(option, text).items():
        if not isinstance(numbers, dict):
            raise BadOption(f'{option} must be like {{"orders":{{"0":23}}}}')
        for partition, number in numbers.items():
            if not (partition.isascii() and partition.isdigit()):
                raise BadOption(f"{option} has {partition!r} instead of a partition number")
            found[topic, int(partition)] = _whole(option, number, smallest)
    return found


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadOption(f"{option} is {text!r}, which is not a JSON object")
    return found


def _whole(option: str, number: object, smallest: int) -> int:
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if not is_number or not smallest <= number < _OFFSET_END:  # type: ignore[operator]
        raise BadOption(f"{option} has {json.dumps(number)} instead of a whole number")
    assert isinstance(number, int)
    return number
