"""What has settings, and how settings are told: shared by all that describe or change them.

Topics have settings that can be changed. A broker's are told under Kafka's names where Kafka has
them; they come from its command line and its configuration, and cannot be changed from afar, but
for one (`server/draining.py`).
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import fields
from enum import IntEnum

from msgspec import Struct

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.changes import REPLICATION
from kafkaesque.broker.problems import problems
from kafkaesque.config import BrokerConfig
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import InvalidRequest
from kafkaesque.machines.catalog import Topic
from kafkaesque.topic_settings import (
    DEFAULTS,
    NAMES,
    CleanupPolicy,
    Flag,
    Never,
    kind_of,
    range_of,
    reasons,
    resolve,
    value_text,
)

_INT32_MAX = (1 << 31) - 1
_LOGGERS = "kafkaesque"

CLOCK_DOUBT = "clock.doubt"


class ResourceType(IntEnum):
    """Kafka's numbers for what can have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Kafka's numbers for where a value comes from."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6


class SettingType(IntEnum):
    """Kafka's numbers for the kinds of values."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Setting(Struct, frozen=True, kw_only=True):
    """One setting as it is told to clients."""

    name: str
    value: str
    source: Source
    type: SettingType
    is_read_only: bool
    synonyms: tuple[tuple[str, str, Source], ...]
    """Name, value and source of each place that was looked at, the one that holds first."""
    documentation: str | None


_BROKER_NAMES: Mapping[str, str] = {
    "partitions_default": "num.partitions",
    "auto_create_topics": "auto.create.topics.enable",
    "frame_bytes_max": "socket.request.max.bytes",
}
"""Fields of BrokerConfig that Kafka has too; the others go by our own name, with dots."""

_DEFAULT_NAMES: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "flush.policy": "log.flush.policy",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "preallocate": "log.preallocate",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""What Kafka calls the default of a topic's setting, where it is a broker's."""


def described(topic: Topic) -> list[Setting]:
    """Return all settings of a topic, those that were never set too."""
    return list(_topic_settings(topic.settings))


def settings_of_new(overrides: Mapping[str, str]) -> list[Setting]:
    """Return all settings that a topic has that is made with these."""
    return list(_topic_settings(overrides))


def broker_settings(broker: Broker, address: str) -> list[Setting]:
    """Return all settings of a broker, which the client reaches by `address`."""
    known = [_fixed("node.id", str(broker.node), SettingType.INT, Source.STATIC_BROKER)]
    brokers = sum(1 for one in broker.catalog.brokers.values() if one.was_there)
    replication = str(min(REPLICATION, max(1, brokers)))
    known.append(_fixed("default.replication.factor", replication, SettingType.INT, Source.DEFAULT))
    known.append(_fixed("log.dirs", broker.data_folder, SettingType.STRING, Source.STATIC_BROKER))
    listener = f"PLAINTEXT://{address}"
    known.append(_fixed("advertised.listeners", listener, SettingType.STRING, Source.STATIC_BROKER))
    doubt = "What is wrong with this broker's wall clock; empty if nothing is."
    known.append(
        _fixed(
            CLOCK_DOUBT, broker.clocks.text, SettingType.STRING, Source.DEFAULT, documentation=doubt
        )
    )
    for name in NAMES:
        value = value_text(DEFAULTS, name)
        text = f"The default of topics: {reasons().get(name, '')}"
        known.append(
            _fixed(_default_name(name), value, _type_of(name), Source.DEFAULT, documentation=text)
        )
    return sorted([*known, *_config_settings(broker.config)], key=lambda setting: setting.name)


def group_settings(config: GroupConfig) -> list[Setting]:
    """Return the settings of any group whose coordinator assigns: each has the broker's."""
    known = {
        "consumer.heartbeat.interval.ms": config.consumer_heartbeat_ms,
        "consumer.session.timeout.ms": config.consumer_session_timeout_ms,
    }
    return [_fixed(name, str(ms), SettingType.INT, Source.DEFAULT) for name, ms in known.items()]


def logger_settings() -> list[Setting]:
    """Return from which level on each part of this broker writes to its log."""
    names = sorted(name for name in logging.root.manager.loggerDict if name.startswith(_LOGGERS))
    levels = {"root": logging.root.level}
    levels |= {name: logging.getLogger(name).getEffectiveLevel() for name in names}
    return [
        _fixed(name, logging.getLevelName(level), SettingType.STRING, Source.BROKER_LOGGER)
        for name, level in levels.items()
    ]


def check_alterable(resource_type: int) -> None:
    """Raise InvalidRequest unless the settings of this kind of resource can be changed."""
    if resource_type == ResourceType.BROKER:
        raise InvalidRequest("a broker's settings cannot be replaced while it runs")
    if resource_type != ResourceType.TOPIC:
        raise InvalidRequest(f"there are no settings of resource type {resource_type}")


def problems_setting(broker: Broker) -> Setting:
    """Return what is wrong with a broker: Kafka has no API that asks a broker how it does."""
    lines = "\n".join(f"{one.kind.value}: {one.text}" for one in problems(broker))
    text = "What is wrong with the broker now, a line for each problem."
    return _fixed("problems", lines, SettingType.STRING, Source.DEFAULT, text)


def repeated_in(names: Iterable[object]) -> Set[object]:
    """Return what is named more than once."""
    return {name for name, times in Counter(names).items() if times > 1}


def check_not_in(repeated: Set[object], name: object, what: str) -> None:
    """Raise InvalidRequest if this is named twice: which one is meant nobody can tell."""
    if name in repeated:
        raise InvalidRequest(f"the request names {what} {name!r} more than once")


def check_unique(names: Iterable[object], what: str) -> None:
    """Raise InvalidRequest if anything is named twice."""
    for name in repeated_in(names):
        raise InvalidRequest(f"the request names {what} {name!r} more than once")


def _topic_settings(overrides: Mapping[str, str]) -> Iterator[Setting]:
    settings = resolve(overrides)
    for name in NAMES:
        value, default = value_text(settings, name), value_text(DEFAULTS, name)
        synonyms = [(_default_name(name), default, Source.DEFAULT)]
        if name in overrides:
            synonyms.insert(0, (name, value, Source.TOPIC))
        yield Setting(
            name=name,
            value=value,
            source=synonyms[0][2],
            type=_type_of(name),
            is_read_only=False,
            synonyms=tuple(synonyms),
            documentation=reasons().get(name),
        )


def _config_settings(config: BrokerConfig) -> Iterator[Setting]:
    defaults = BrokerConfig()
    for field in fields(BrokerConfig):
        value = getattr(config, field.name)
        if not isinstance(value, bool | int | str):
            continue
        name = _BROKER_NAMES.get(field.name, field.name.replace("_", "."))
        is_default = value == getattr(defaults, field.name)
        source = Source.DEFAULT if is_default else Source.STATIC_BROKER
        if isinstance(value, bool):
            yield _fixed(name, str(value).lower(), SettingType.BOOLEAN, source)
        else:
            is_number = isinstance(value, int)
            kind = SettingType.INT if is_number else SettingType.STRING
            yield _fixed(name, str(value), kind, source)


def _fixed(
    name: str, value: str, kind: SettingType, source: Source, documentation: str | None = None
) -> Setting:
    return Setting(
        name=name,
        value=value,
        source=source,
        type=kind,
        is_read_only=True,
        synonyms=((name, value, source),),
        documentation=documentation,
    )


def _default_name(name: str) -> str:
    return _DEFAULT_NAMES.get(name, f"log.{name}")


def _type_of(name: str) -> SettingType:
    kind = kind_of(name)
    if kind is CleanupPolicy or kind is str:
        return SettingType.LIST
    if kind in (Flag, Never):
        return SettingType.BOOLEAN
    if kind is float:
        return SettingType.DOUBLE
    if kind is not int:
        return SettingType.STRING
    return SettingType.INT if range_of(name)[1] <= _INT32_MAX else SettingType.LONG
