"""Resources with settings, and the description of a setting, shared by the config handlers.

This module covers topics. Brokers are in `server/admin/broker_settings.py`, groups in
`server/admin/group_settings.py`, loggers in `server/admin/loggers.py`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.broker.broker import Broker
from kafkaesque.dynamic_settings import default_name
from kafkaesque.machines.catalog.broker_settings import ALL_BROKERS
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.topic_settings import (
    DEFAULTS,
    TOPIC_SETTINGS,
    CleanupPolicy,
    Flag,
    Never,
    resolve,
    value_text,
)
from kafkaesque.types import NodeId

_INT32_MAX = (1 << 31) - 1


class ResourceType(IntEnum):
    """Kafka's numbers for resource types."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Kafka's numbers for the source of a value."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    GROUP = 8


class SettingType(IntEnum):
    """Kafka's numbers for value types."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


Synonym: TypeAlias = tuple[str, str, Source]
"""A name, its value, and its source."""

SetHere: TypeAlias = Sequence[tuple[Source, Mapping[str, str]]]
"""Settings made at run time, by source: the first source that has a setting wins."""


class Setting(Struct, frozen=True, kw_only=True):
    """One setting as clients see it."""

    name: str
    value: str
    source: Source
    type: SettingType
    is_read_only: bool
    synonyms: tuple[Synonym, ...]
    """All sources of the value, the effective one first."""
    documentation: str | None


def described(topic: Topic, broker: Broker) -> list[Setting]:
    """Return all settings of a topic, including those never set."""
    return settings_of_new(topic.settings, broker)


def settings_of_new(overrides: Mapping[str, str], broker: Broker) -> list[Setting]:
    """Return all settings of a topic created with these overrides."""
    set_here = changed_at_run_time(broker, broker.node)
    return [_topic_setting(name, overrides, broker, set_here) for name in TOPIC_SETTINGS]


def changed_at_run_time(broker: Broker, node: NodeId) -> SetHere:
    """Return what was set at run time for a broker, and for all brokers."""
    known = broker.committed_catalog.machine.broker_settings
    return (
        (Source.DYNAMIC_BROKER, known.get(node, {})),
        (Source.DYNAMIC_DEFAULT_BROKER, known.get(ALL_BROKERS, {})),
    )


def default_synonyms(name: str, broker: Broker, set_here: SetHere) -> list[Synonym]:
    """Return the sources of a topic setting's default, in order of precedence."""
    own = default_name(name)
    found = [
        (own, value_text(resolve({name: texts[own]}), name), source)
        for source, texts in set_here
        if own in texts
    ]
    static, default = value_text(broker.live.static_defaults, name), value_text(DEFAULTS, name)
    if static != default:
        found.append((own, static, Source.STATIC_BROKER))
    return [*found, (own, default, Source.DEFAULT)]


def repeated_in(names: Iterable[object]) -> Set[object]:
    """Return the names that occur more than once."""
    return {name for name, times in Counter(names).items() if times > 1}


def check_not_in(repeated: Set[object], name: object, what: str) -> None:
    """Raise InvalidRequest if this name is ambiguous because it occurs twice."""
    if name in repeated:
        raise InvalidRequest(f"the request names {what} {name!r} more than once")


def check_unique(names: Iterable[object], what: str) -> None:
    """Raise InvalidRequest if anything is named twice."""
    for name in repeated_in(names):
        raise InvalidRequest(f"the request names {what} {name!r} more than once")


def _topic_setting(
    name: str,
    overrides: Mapping[str, str],
    broker: Broker,
    set_here: SetHere,
) -> Setting:
    synonyms = default_synonyms(name, broker, set_here)
    if name in overrides:
        synonyms.insert(0, (name, value_text(resolve(overrides), name), Source.TOPIC))
    return Setting(
        name=name,
        value=synonyms[0][1],
        source=synonyms[0][2],
        type=type_of(name),
        is_read_only=False,
        synonyms=tuple(synonyms),
        documentation=TOPIC_SETTINGS[name].does,
    )


def fixed(
    name: str, value: str, kind: SettingType, source: Source, documentation: str | None = None
) -> Setting:
    """Return a read-only setting."""
    return Setting(
        name=name,
        value=value,
        source=source,
        type=kind,
        is_read_only=True,
        synonyms=((name, value, source),),
        documentation=documentation,
    )


def type_of(name: str) -> SettingType:
    """Return the value type of a topic setting."""
    row = TOPIC_SETTINGS[name]
    kind = row.kind
    if kind is CleanupPolicy or kind is str:
        return SettingType.LIST
    if kind in (Flag, Never):
        return SettingType.BOOLEAN
    if kind is float:
        return SettingType.DOUBLE
    if kind is not int:
        return SettingType.STRING
    return SettingType.INT if row.most <= _INT32_MAX else SettingType.LONG
