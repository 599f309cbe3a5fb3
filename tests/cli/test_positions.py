"""Positions in a partition, as users write them."""

from datetime import UTC, datetime

import pytest

from kafkaesque.cli.positions import (
    AtOffset,
    AtTime,
    Beginning,
    End,
    Position,
    Shift,
    parse_position,
)

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", Beginning()),
        ("earliest", Beginning()),
        ("End", End()),
        ("latest", End()),
        ("42", AtOffset(42)),
        ("+5", Shift(5)),
        ("-100", Shift(-100)),
        ("10 minutes ago", AtTime(NOW_MS - 600_000)),
        ("1 minute ago", AtTime(NOW_MS - 60_000)),
        ("90s", AtTime(NOW_MS - 90_000)),
        ("15 ms", AtTime(NOW_MS - 15)),
        ("2h", AtTime(NOW_MS - 7_200_000)),
        ("3 days", AtTime(NOW_MS - 3 * 86_400_000)),
        ("1970-01-01T00:00:01Z", AtTime(1_000)),
        ("1970-01-01T01:00:00+01:00", AtTime(0)),
    ],
)
def test_a_position_is_read(text: str, expected: Position) -> None:
    assert parse_position(text, NOW_MS) == expected


def test_a_time_without_a_zone_is_local() -> None:
    local = datetime(2026, 1, 31, 12, 0, tzinfo=UTC).astimezone().replace(tzinfo=None)
    assert parse_position(local.isoformat(), NOW_MS) == AtTime(1_769_860_800_000)


def test_a_time_span_before_1970_is_the_first_moment() -> None:
    assert parse_position("999999999999 weeks ago", NOW_MS) == AtTime(0)


@pytest.mark.parametrize("text", ["", "tomorrow", "10 fortnights", "1.5", "-", "--5", "12:00"])
def test_an_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a position"):
        parse_position(text, NOW_MS)
