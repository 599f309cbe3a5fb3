"""What of a broker's settings can be changed while it runs: one row for each.

A setting has Kafka's name where Kafka has it, else its key in the configuration file. It can be set
for one broker and for all of them; what is set for one wins, then what is set for all, then the
broker's own configuration, then the default. The catalog keeps what was set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from msgspec import Struct

from kafkaesque.config import BrokerConfig, LimitsConfig
from kafkaesque.errors import BadConfiguration, InvalidSetting
from kafkaesque.settings import KEYS, OF_THE_BROKER, Key, Value, parse
from kafkaesque.topic_settings import DEFAULTS, NAMES, TopicSettings, kind_of, resolve

VALUE_CHARS_MAX = 100
"""Of one value: numbers have 20, and every broker keeps all of them."""

Texts: TypeAlias = Mapping[str, str]
"""Settings by name, as clients write them."""


class Row(Struct, frozen=True, kw_only=True):
    """One setting, and where it acts: in the configuration, in topics, or nowhere."""

    name: str
    key: str = ""
    """What it stands for in the configuration, `section.field`."""
    topic: str = ""
    """The setting of topics whose default it is."""
    text: str = ""
    """What changes with it."""


_IN_CONFIGURATION = (
    Row(
        name="auto.create.topics.enable",
        key="broker.auto_create_topics",
        text="Whether to create a topic when a client asks for its metadata.",
    ),
    Row(
        name="num.partitions",
        key="broker.partitions_default",
        text="Partitions of a topic that is created without saying how many.",
    ),
    Row(
        name="max.connections",
        key="limits.connections_max",
        text="Connections of all kinds; further ones are closed, those that are open stay.",
    ),
    Row(
        name="max.connections.per.ip",
        key="limits.connections_per_address_max",
        text="Connections from one address; further ones are closed.",
    ),
    Row(
        name="max.connection.creation.rate",
        key="limits.connection_rate_max",
        text="New connections per second; further ones are closed.",
    ),
    Row(
        name="limits.connection_rate_per_address_max",
        key="limits.connection_rate_per_address_max",
        text="New connections per second from one address; further ones are closed.",
    ),
    Row(
        name="connections.max.idle.ms",
        key="limits.idle_ms_max",
        text="A connection on which nothing happens for this long is closed.",
    ),
    Row(
        name="group.initial.rebalance.delay.ms",
        key="groups.initial_rebalance_delay_ms",
        text="How long an empty group gathers members; it holds from the next rebalance on.",
    ),
    Row(
        name="group.min.session.timeout.ms",
        key="groups.session_timeout_ms_min",
        text="The shortest time-out that a member may ask for when it joins.",
    ),
    Row(
        name="group.max.session.timeout.ms",
        key="groups.session_timeout_ms_max",
        text="The longest time-out that a member may ask for when it joins.",
    ),
    Row(
        name="group.max.size",
        key="groups.members_max",
        text="Members of one group; further ones are refused, those that are in stay.",
    ),
    Row(
        name="group.consumer.session.timeout.ms",
        key="groups.consumer_session_timeout_ms",
        text="After this silence a member of a group whose coordinator assigns is dropped.",
    ),
    Row(
        name="group.consumer.heartbeat.interval.ms",
        key="groups.consumer_heartbeat_ms",
        text="How often such a member is to be heard from; it learns so with its next heartbeat.",
    ),
    Row(
        name="group.consumer.migration.policy",
        key="groups.consumer_migration_policy",
        text="How groups change their kind while in use.",
    ),
    Row(
        name="offset.metadata.max.bytes",
        key="groups.offset_metadata_bytes_max",
        text="What a client may note beside an offset.",
    ),
    Row(
        name="groups.offsets_retention_ms",
        key="groups.offsets_retention_ms",
        text="Offsets are forgotten this long after their group became empty.",
    ),
    Row(
        name="producer.id.expiration.ms",
        key="producers.expiration_ms",
        text="A producer that was idle for this long in a partition is forgotten there.",
    ),
    Row(
        name="transaction.max.timeout.ms",
        key="transactions.timeout_ms_max",
        text="The longest time-out that a producer may ask for.",
    ),
    Row(
        name="transactional.id.expiration.ms",
        key="transactions.id_expiration_ms",
        text="Transactional ids that were not used for this long are forgotten.",
    ),
    Row(
        name="fetch.max.bytes",
        key="fetch.answer_bytes_max",
        text="One answer to a consumer carries no more, unless its first batch is larger.",
    ),
    Row(
        name="max.incremental.fetch.session.cache.slots",
        key="fetch.sessions_max",
        text="Fetch sessions that are remembered; the oldest beyond it are forgotten.",
    ),
    Row(
        name="log.retention.check.interval.ms",
        key="housekeeping.check_interval_ms",
        text="How often each log is looked at for what is to be deleted or compacted.",
    ),
    Row(
        name="housekeeping.scrub_bytes_per_second",
        key="housekeeping.scrub_bytes_per_second",
        text="How fast closed segments are read through in search of damage; 0 is off.",
    ),
    Row(
        name="leader.replication.throttled.rate",
        key="moves.catch_up_bytes_per_second",
        text="What all new replicas of moved partitions that a broker leads are sent together.",
    ),
    Row(
        name="moves.moves_max",
        key="moves.moves_max",
        text="Partitions led by a broker whose new replicas catch up at a time.",
    ),
    Row(
        name="cluster.auto_rebalance",
        key="cluster.auto_rebalance",
        text="Whether a broker that was added gets its share; acts where the catalog is led.",
    ),
    Row(
        name="cluster.moves_max",
        key="cluster.moves_max",
        text="Partitions that the cluster moves by itself at a time; acts where the catalog is "
        "led.",
    ),
    Row(
        name="cluster.replica_replace_ms",
        key="cluster.replica_replace_ms",
        text="A broker's replicas are replaced when it was away for this long; acts where the "
        "catalog is led. Raise it before a long maintenance.",
    ),
)

_WITHOUT_EFFECT = (
    Row(
        name="follower.replication.throttled.rate",
        text="Taken from Kafka's tools, without effect: the leader's rate bounds a move.",
    ),
    Row(
        name="replica.alter.log.dirs.io.max.bytes.per.second",
        text="Taken from Kafka's tools, without effect: a broker has one folder.",
    ),
)

THROTTLES = frozenset({"leader.replication.throttled.rate", *(one.name for one in _WITHOUT_EFFECT)})
"""What Kafka's tools set and clear around each move of partitions."""

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

_OF_TOPICS = tuple(
    Row(name=_DEFAULT_NAMES[topic], topic=topic) for topic in NAMES if topic in _DEFAULT_NAMES
)
"""All but the lists of throttled replicas: those name partitions of one topic."""

ROWS: Mapping[str, Row] = {
    row.name: row
    for row in sorted((*_IN_CONFIGURATION, *_OF_TOPICS, *_WITHOUT_EFFECT), key=lambda row: row.name)
}
"""Every setting that can be changed while a broker runs, by its name."""

_BY_KEY: Mapping[str, str] = {row.key: row.name for row in ROWS.values() if row.key}
_FIXED_NAMES: Mapping[str, str] = {
    "limits.frame_bytes_max": "socket.request.max.bytes",
    "groups.offsets_partitions": "offsets.topic.num.partitions",
    "transactions.state_partitions": "transaction.state.log.num.partitions",
}
"""Keys that Kafka has too, and that cannot be changed while a broker runs."""


def default_name(topic_setting: str) -> str:
    """Return the name of the default of a topic's setting."""
    return _DEFAULT_NAMES.get(topic_setting, f"log.{topic_setting}")


def name_of(key: Key) -> str:
    """Return the name by which clients know a setting of the configuration."""
    return _BY_KEY.get(key.name) or _FIXED_NAMES.get(key.name, key.name)


def check(name: str, text: str) -> None:
    """Raise InvalidSetting for a name that is not in the table, or a value that cannot be."""
    row = ROWS.get(name)
    if row is None:
        raise InvalidSetting(f"there is no setting {name!r} of brokers that can be changed")
    if len(text) > VALUE_CHARS_MAX:
        raise InvalidSetting(f"{name} has at most {VALUE_CHARS_MAX} characters")
    if row.topic:
        _topic_value(row, text)
    elif row.key:
        _config_value(row, text)
    elif not text.isdecimal():
        raise InvalidSetting(f"{name} is a whole number, not {text!r}")


def static_defaults(config: BrokerConfig) -> TopicSettings:
    """Return what holds for topics where nothing was set at run time."""
    return replace(DEFAULTS, min_cleanable_dirty_ratio=config.housekeeping.dirty_share_min)


def topic_defaults(static: TopicSettings, texts: Texts) -> TopicSettings:
    """Return what holds for topics of which nothing else is said."""
    rows = ((ROWS[name].topic, text) for name, text in texts.items() if name in ROWS)
    return resolve({topic: text for topic, text in rows if topic}, static)


def with_changes(config: BrokerConfig, texts: Texts) -> BrokerConfig:
    """Return a broker's configuration with these set otherwise; raises InvalidSetting."""
    values = dict(_by_section(texts))
    parts = {
        name: _changed(getattr(config, name), values[name])
        for name in OF_THE_BROKER
        if name in values
    }
    changed: BrokerConfig = _changed(config, {**values.get("broker", {}), **parts})
    return changed


def limits_with_changes(limits: LimitsConfig, texts: Texts) -> LimitsConfig:
    """Return the limits with these set otherwise; raises InvalidSetting."""
    changed: LimitsConfig = _changed(limits, dict(_by_section(texts)).get("limits", {}))
    return changed


def is_list(name: str) -> bool:
    """Return whether items can be added to a setting and taken from it."""
    return ROWS[name].topic == "cleanup.policy"


def _by_section(texts: Texts) -> Iterator[tuple[str, dict[str, Any]]]:
    found: dict[str, dict[str, Any]] = {}
    for name, text in texts.items():
        row = ROWS.get(name)
        if row is not None and row.key:
            key = KEYS[row.key]
            found.setdefault(key.section, {})[key.field] = _config_value(row, text)
    yield from found.items()


def _changed(part: Any, values: Mapping[str, Any]) -> Any:
    try:
        return replace(part, **values)
    except BadConfiguration as error:
        said = str(error)
        for key, name in _BY_KEY.items():
            said = said.replace(f"{key} ", f"{name} ").replace(f"{key},", f"{name},")
        raise InvalidSetting(said) from None


def _topic_value(row: Row, text: str) -> None:
    try:
        resolve({row.topic: text})
    except InvalidSetting as error:
        # The sentence begins with the name that the setting has in a topic.
        raise InvalidSetting(row.name + str(error).removeprefix(row.topic)) from None


def _config_value(row: Row, text: str) -> Value:
    try:
        return parse(KEYS[row.key], text, row.name)
    except BadConfiguration as error:
        raise InvalidSetting(str(error)) from None


def type_of(row: Row) -> type[Any]:
    """Return the type of a setting's value."""
    if row.topic:
        return kind_of(row.topic)
    return KEYS[row.key].kind if row.key else int
