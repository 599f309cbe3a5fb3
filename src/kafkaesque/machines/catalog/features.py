"""Feature levels: what a broker supports, where the cluster works, and when levels may rise.

A broker registers the range of levels it supports. An operator finalises a level once every
registered broker supports it; after that, brokers that do not are refused, and records that came
with the level may be written. So brokers of two versions work together during a rolling upgrade,
and each can be rolled back until the level is finalised.

    feature               levels  what a level brings
    catalog.version       1       the records of format 4
                          2       the record of feature levels itself
                          3       topic settings that older brokers refuse (`topic_settings.py`)
                          4       broker settings (`dynamic_settings.py`)
                          5       group settings (`group_settings.py`)
    group.version         1       groups of the consumer protocol
    share.version         1       share groups
    transaction.version   1       transactions as clients before KIP-890 speak them
                          2       an epoch for each transaction

Like the deciding methods of `Catalog`, these look at the state and return records.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from kafkaesque.machines.catalog.catalog_errors import InvalidLevel
from kafkaesque.machines.catalog.catalog_records import FEATURES_KEY, FeaturesSet, record
from kafkaesque.machines.catalog.catalog_values import Registration
from kafkaesque.machines.machine import MachineRecord

Range: TypeAlias = tuple[int, int]
"""The lowest and the highest level."""

CATALOG_VERSION = "catalog.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
TRANSACTION_VERSION = "transaction.version"

CATALOG_VERSION_LAST = 5
FEATURES_SINCE = 2
"""From this catalog level, its log may hold finalised levels."""

SETTINGS_SINCE = 4
"""From this catalog level, its log may hold broker settings."""

GROUP_SETTINGS_SINCE = 5
"""From this catalog level, its log may hold group settings."""

UNSAID: Mapping[str, Range] = {
    CATALOG_VERSION: (1, 1),
    GROUP_VERSION: (1, 1),
    TRANSACTION_VERSION: (1, 2),
}
"""What a broker supports that reports nothing: its version knew no levels."""

_GOES_BACK = frozenset({TRANSACTION_VERSION})
"""Features that leave nothing in a log: a lower level loses nothing."""


class Finalized(Struct, frozen=True, kw_only=True):
    """The levels at which the whole cluster works."""

    levels: Mapping[str, int] = field(
        default_factory=lambda: {CATALOG_VERSION: 1, GROUP_VERSION: 1, TRANSACTION_VERSION: 2}
    )
    """Until something is finalised: the levels of versions that knew no levels."""

    epoch: int = 0
    """Grows with each change."""


def supported(catalog_version_max: int = CATALOG_VERSION_LAST) -> Mapping[str, Range]:
    """Return what this version supports; tests can make it act as an older one."""
    newest = min(catalog_version_max, CATALOG_VERSION_LAST)
    share = {SHARE_VERSION: (1, 1)} if newest >= GROUP_SETTINGS_SINCE else {}
    return {**UNSAID, **share, CATALOG_VERSION: (1, newest)}


def shortfall(who: str, ranges: Mapping[str, Range], levels: Mapping[str, int]) -> str | None:
    """Return a sentence on why a broker of these ranges cannot work at these levels, or None.

    A broker that reports nothing counts as the last version that knew no levels.
    """
    for name, level in sorted(levels.items()):
        first, last = (ranges or UNSAID).get(name, (0, 0))
        if not first <= level <= last:
            knows = f"knows no {name}" if not last else f"supports {name} {first} to {last}"
            remedy = "a newer" if level > last else "an older"
            return (
                f"{who} {knows}, but the cluster has finalised level {level}: "
                f"use {remedy} Kafkaesque"
            )
    return None


def first_features(ranges: Mapping[str, Range]) -> list[MachineRecord]:
    """Decide the levels of a new cluster: the highest that its first broker supports."""
    levels = {name: last for name, (_, last) in ranges.items()}
    return _written(Finalized(levels=levels, epoch=1))


def finalize(
    before: Finalized,
    brokers: Iterable[Registration],
    changes: Mapping[str, int],
    *,
    can_lower: bool = False,
) -> list[MachineRecord]:
    """Decide to raise levels, or lower those that can be; raises InvalidLevel."""
    levels = {**before.levels, **changes}
    for name, level in changes.items():
        _check_change(name, before.levels.get(name), level, can_lower=can_lower)
    for broker in brokers:
        _check_support(broker, changes)
    if levels == before.levels:
        return []
    if levels[CATALOG_VERSION] < FEATURES_SINCE:
        raise InvalidLevel(f"finalise {CATALOG_VERSION} {FEATURES_SINCE} before other levels")
    return _written(Finalized(levels=levels, epoch=before.epoch + 1))


def features_of(value: FeaturesSet) -> Finalized:
    """Return the levels in a record."""
    return Finalized(levels=value.levels, epoch=value.epoch)


def features_record(finalized: Finalized) -> MachineRecord:
    """Return the record of the levels."""
    value = FeaturesSet(levels=dict(finalized.levels), epoch=finalized.epoch)
    return record(FEATURES_KEY, value)


def _written(finalized: Finalized) -> list[MachineRecord]:
    """Return what may be written about the levels at these levels."""
    can_say = finalized.levels[CATALOG_VERSION] >= FEATURES_SINCE
    return [features_record(finalized)] if can_say else []


def _check_support(broker: Registration, changes: Mapping[str, int]) -> None:
    ranges = broker.levels or UNSAID
    for name, level in changes.items():
        first, last = ranges.get(name, (0, 0))
        if not first <= level <= last:
            raise InvalidLevel(
                f"broker {broker.node} supports {name} {first} to {last}, not {level}: "
                "upgrade or remove it first"
            )


def _check_change(name: str, before: int | None, level: int, *, can_lower: bool) -> None:
    if before is None:
        # A cluster of older brokers has no level of a feature that they did not know.
        if name not in supported():
            raise InvalidLevel(f"there is no feature {name}")
        before = 0
    if level >= before:
        return
    if name not in _GOES_BACK:
        raise InvalidLevel(
            f"{name} stays at {before}: older versions could not read what was written since"
        )
    if not can_lower:
        raise InvalidLevel(f"{name} is already at {before}: ask for a downgrade to lower it")
