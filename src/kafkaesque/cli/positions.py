"""Positions in a partition, as users write them: an end, an offset, a time, or a shift."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import click

from kafkaesque.clock import SystemClock
from kafkaesque.types import Offset

_SECOND_MS = 1000
_UNITS_MS = {
    "ms": 1,
    "s": _SECOND_MS,
    "second": _SECOND_MS,
    "m": 60 * _SECOND_MS,
    "min": 60 * _SECOND_MS,
    "minute": 60 * _SECOND_MS,
    "h": 3600 * _SECOND_MS,
    "hour": 3600 * _SECOND_MS,
    "d": 24 * 3600 * _SECOND_MS,
    "day": 24 * 3600 * _SECOND_MS,
    "w": 7 * 24 * 3600 * _SECOND_MS,
    "week": 7 * 24 * 3600 * _SECOND_MS,
}
_AGO = re.compile(r"(\d{1,12})\s*([a-z]+)(?:\s+ago)?")
_OFFSET = re.compile(r"\d{1,19}")
_SHIFT = re.compile(r"[+-]\d{1,18}")


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first record that still exists."""


@dataclass(frozen=True, slots=True)
class End:
    """After the last record."""


@dataclass(frozen=True, slots=True)
class AtOffset:
    """This offset."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after this time."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Shift:
    """This many records forward, or back if negative."""

    records: int


Position: TypeAlias = Beginning | End | AtOffset | AtTime | Shift


def parse_position(text: str, now_ms: int) -> Position:
    """Read a position; raises ValueError with a sentence if it is not one.

    `beginning` or `earliest`, `end` or `latest`, an offset, `+5` or `-5` for a shift, an ISO time
    (without a zone: the machine's own), or a time ago: `10 minutes ago`, `90s`.
    """
    word = text.strip()
    match word.lower():
        case "beginning" | "earliest":
            return Beginning()
        case "end" | "latest":
            return End()
    if _OFFSET.fullmatch(word):
        return AtOffset(int(word))
    if _SHIFT.fullmatch(word):
        return Shift(int(word))
    ago = _AGO.fullmatch(word.lower())
    unit_ms = None if ago is None else _UNITS_MS.get(ago[2], _UNITS_MS.get(ago[2].rstrip("s")))
    if ago is not None and unit_ms is not None:
        return AtTime(max(0, now_ms - int(ago[1]) * unit_ms))
    try:
        return AtTime(int(datetime.fromisoformat(word).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is not a position: expected beginning, end, an offset, a time like "
            "2026-01-31T12:00:00Z, or one like '10 minutes ago'"
        ) from None


class PositionType(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """The type of an option that takes a position."""

    name = "position"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Position:
        """Convert the option's value."""
        if isinstance(value, Position):
            return value
        try:
            return parse_position(str(value), SystemClock().now_ms())
        except ValueError as error:
            self.fail(str(error), param, ctx)
