"""Settings of single groups, by Kafka's names: how its members are watched, what a queue does.

They are kept in the catalog and override the broker's. An unknown setting is refused, never
silently stored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct

from kafkaesque.errors import InvalidSetting

T = TypeVar("T")

EARLIEST = "earliest"
LATEST = "latest"
_BY_DURATION = re.compile(
    r"by_duration:P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)
_UNIT_MS = (86_400_000, 3_600_000, 60_000, 1000)
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


class Isolation(StrEnum):
    """Which records of transactions are handed out."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Switch(StrEnum):
    """On or off, as Kafka writes it."""

    FALSE = "false"
    TRUE = "true"


class GroupSetting(Struct, frozen=True, kw_only=True):
    """The row of one setting."""

    kind: type[Any]
    does: str
    least: int
    most: int
    of_brokers: str
    """The broker setting that holds its default; empty if there is none."""


def _row(default: T, does: str, *, least: int = 0, most: int = 0, of_brokers: str = "") -> T:
    about = GroupSetting(
        kind=type(default), does=does, least=least, most=most, of_brokers=of_brokers
    )
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """All settings of one group, with their defaults."""

    share_auto_offset_reset: str = _row(
        LATEST,
        "Where a share group starts in a partition: earliest, latest, or by_duration:PT1H.",
    )
    share_delivery_count_limit: int = _row(
        5,
        "How often a record is delivered before it is given up.",
        least=2,
        most=100,
    )
    share_isolation_level: Isolation = _row(
        Isolation.READ_UNCOMMITTED,
        "Whether to hand out records of transactions that are not committed.",
    )
    share_partition_max_record_locks: int = _row(
        2000,
        "Records of a partition that may be in progress, from the first that is not done.",
        least=100,
        most=100_000,
    )
    share_record_lock_duration_ms: int = _row(
        30_000,
        "How long a member has a record before it is given to another one.",
        least=1000,
        most=_HOUR_MS,
    )
    share_renew_acknowledge_enable: Switch = _row(
        Switch.TRUE,
        "Whether members may extend their locks.",
    )


DEFAULTS = GroupSettings()

GROUP_SETTINGS: Mapping[str, GroupSetting] = {
    one.name.replace("_", "."): one.metadata["about"] for one in fields(GroupSettings)
}
"""By name, as clients write it."""


def resolve_group(overrides: Mapping[str, str]) -> GroupSettings:
    """Return the settings with overrides applied; raises InvalidSetting for invalid ones."""
    values = {one.name: getattr(DEFAULTS, one.name) for one in fields(GroupSettings)}
    for name, text in overrides.items():
        row = GROUP_SETTINGS.get(name)
        if row is None:
            raise InvalidSetting(f"unknown group setting {name[:100]!r}")
        values[name.replace(".", "_")] = _parse(name, row, text)
    return GroupSettings(**values)


def group_value_text(settings: GroupSettings, name: str) -> str:
    """Return one setting as clients write it."""
    return str(getattr(settings, name.replace(".", "_")))


def reset_ms(reset: str) -> int | None:
    """Return how far back `by_duration` starts; None for `earliest` and `latest`."""
    found = _BY_DURATION.fullmatch(reset)
    if found is None:
        return None
    return sum(int(float(text) * ms) for text, ms in zip(found.groups("0"), _UNIT_MS, strict=True))


def _parse(name: str, row: GroupSetting, text: str) -> int | str:
    if issubclass(row.kind, StrEnum):
        if text not in list(row.kind):
            raise InvalidSetting(f"{name} must be one of {', '.join(row.kind)}, not {text[:100]!r}")
        return row.kind(text)
    if row.kind is str:
        if text not in (EARLIEST, LATEST) and not reset_ms(text):
            raise InvalidSetting(
                f"{name} must be earliest, latest or by_duration:PT1H, not {text[:100]!r}"
            )
        return text
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise InvalidSetting(f"{name} must be a whole number, not {text[:100]!r}")
    value = int(text)
    if not row.least <= value <= row.most:
        raise InvalidSetting(f"{name} must be from {row.least} to {row.most}, not {value}")
    return value
