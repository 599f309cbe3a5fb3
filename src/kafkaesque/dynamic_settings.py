"""The broker settings that can be changed at run time: one row each.

A setting has Kafka's name if Kafka has it, else its key in the configuration file. It can be set
for one broker or for all. The value for one broker wins, then the value for all, then the broker's
own configuration, then the default. The catalog stores the values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from msgspec import Struct

from kafkaesque.config import BrokerConfig
from kafkaesque.errors import BadConfiguration, InvalidSetting
from kafkaesque.server_config import LimitsConfig
from kafkaesque.settings import KEYS, OF_THE_BROKER, Key, Value, parse
from kafkaesque.topic_settings import DEFAULTS, TOPIC_SETTINGS, TopicSettings, resolve

VALUE_CHARS_MAX = 100
"""Limit of one value: numbers have 20, and every broker keeps all values."""

Texts: TypeAlias = Mapping[str, str]
"""Settings by name, as clients write them."""


class Row(Struct, frozen=True, kw_only=True):
    """One setting, and what it acts on: the configuration, topics, or nothing."""

    name: str
    key: str = ""
    """Its configuration key, `section.field`."""
    topic: str = ""
    """The topic setting whose default it is."""
    text: str = ""
    """What it changes."""


_IN_CONFIGURATION = (
    Row(
        name="auto.create.topics.enable",
        key="broker.auto_create_topics",
        text="Whether to create a topic when a client requests its metadata.",
    ),
    Row(
        name="num.partitions",
        key="broker.partitions_default",
        text="Partitions of a topic created without a partition count.",
    ),
    Row(
        name="max.connections",
        key="limits.connections_max",
        text="Connections of all kinds; further ones are closed, open ones stay.",
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
        text="A connection idle for this long is closed.",
    ),
    Row(
        name="group.initial.rebalance.delay.ms",
        key="groups.initial_rebalance_delay_ms",
        text="How long an empty group waits for members; applies from the next rebalance.",
    ),
    Row(
        name="group.min.session.timeout.ms",
        key="groups.session_timeout_ms_min",
        text="The shortest timeout that a joining member may request.",
    ),
    Row(
        name="group.max.session.timeout.ms",
        key="groups.session_timeout_ms_max",
        text="The longest timeout that a joining member may request.",
    ),
    Row(
        name="group.max.size",
        key="groups.members_max",
        text="Members of one group; further ones are refused, present ones stay.",
    ),
    Row(
        name="group.consumer.session.timeout.ms",
        key="groups.consumer_session_timeout_ms",
        text="A member is dropped after this silence if its coordinator assigns.",
    ),
    Row(
        name="group.consumer.heartbeat.interval.ms",
        key="groups.consumer_heartbeat_ms",
        text="Heartbeat interval of such a member; it learns a new value with its next heartbeat.",
    ),
    Row(
        name="group.share.session.timeout.ms",
        key="groups.share_session_timeout_ms",
        text="A member of a share group is dropped after this silence.",
    ),
    Row(
        name="group.share.heartbeat.interval.ms",
        key="groups.share_heartbeat_ms",
        text="Heartbeat interval of such a member; it learns a new value with its next heartbeat.",
    ),
    Row(
        name="group.consumer.migration.policy",
        key="groups.consumer_migration_policy",
        text="How live groups change their protocol.",
    ),
    Row(
        name="offset.metadata.max.bytes",
        key="groups.offset_metadata_bytes_max",
        text="Metadata that a client may store with an offset.",
    ),
    Row(
        name="groups.offsets_retention_ms",
        key="groups.offsets_retention_ms",
        text="Offsets expire this long after their group became empty.",
    ),
    Row(
        name="producer.id.expiration.ms",
        key="producers.expiration_ms",
        text="A producer idle for this long in a partition is forgotten there.",
    ),
    Row(
        name="transaction.max.timeout.ms",
        key="transactions.timeout_ms_max",
        text="The longest timeout that a producer may request.",
    ),
    Row(
        name="transactional.id.expiration.ms",
        key="transactions.id_expiration_ms",
        text="Transactional ids unused for this long are forgotten.",
    ),
    Row(
        name="fetch.max.bytes",
        key="fetch.answer_bytes_max",
        text="The largest fetch response, unless its first batch is larger.",
    ),
    Row(
        name="max.incremental.fetch.session.cache.slots",
        key="fetch.sessions_max",
        text="Fetch sessions that are kept; beyond it the oldest are evicted.",
    ),
    Row(
        name="log.retention.check.interval.ms",
        key="housekeeping.check_interval_ms",
        text="How often each log is checked for retention and compaction.",
    ),
    Row(
        name="housekeeping.scrub_bytes_per_second",
        key="housekeeping.scrub_bytes_per_second",
        text="How fast the scrub reads closed segments to find damage; 0 turns it off.",
    ),
    Row(
        name="leader.replication.throttled.rate",
        key="moves.catch_up_bytes_per_second",
        text="Rate at which a broker sends to all new replicas of the moved partitions it leads.",
    ),
    Row(
        name="moves.moves_max",
        key="moves.moves_max",
        text="Partitions led by a broker whose new replicas may catch up at a time.",
    ),
    Row(
        name="cluster.auto_rebalance",
        key="cluster.auto_rebalance",
        text="Whether a new broker gets its share of partitions; acts on the catalog leader.",
    ),
    Row(
        name="cluster.moves_max",
        key="cluster.moves_max",
        text="Partitions that the cluster moves at a time on its own; acts on the catalog leader.",
    ),
    Row(
        name="cluster.replica_replace_ms",
        key="cluster.replica_replace_ms",
        text="A broker's replicas are replaced when it was away for this long; acts on the catalog "
        "leader. Raise it before a long maintenance.",
    ),
)

_WITHOUT_EFFECT = (
    Row(
        name="follower.replication.throttled.rate",
        text="Accepted from Kafka's tools, without effect: the leader's rate limits a move.",
    ),
    Row(
        name="replica.alter.log.dirs.io.max.bytes.per.second",
        text="Accepted from Kafka's tools, without effect: a broker has one folder.",
    ),
)

THROTTLES = frozenset({"leader.replication.throttled.rate", *(one.name for one in _WITHOUT_EFFECT)})
"""What Kafka's tools set and clear around each move of partitions."""

_OF_TOPICS = tuple(
    Row(name=row.of_brokers, topic=topic) for topic, row in TOPIC_SETTINGS.items() if row.of_brokers
)
"""All but the lists of throttled replicas, which name partitions of one topic."""

ROWS: Mapping[str, Row] = {
    row.name: row
    for row in sorted((*_IN_CONFIGURATION, *_OF_TOPICS, *_WITHOUT_EFFECT), key=lambda row: row.name)
}
"""Every setting that can be changed at run time, by its name."""

_BY_KEY: Mapping[str, str] = {row.key: row.name for row in ROWS.values() if row.key}
_FIXED_NAMES: Mapping[str, str] = {
    "limits.frame_bytes_max": "socket.request.max.bytes",
    "groups.offsets_partitions": "offsets.topic.num.partitions",
    "transactions.state_partitions": "transaction.state.log.num.partitions",
}
"""Keys that Kafka has too, and that cannot be changed at run time."""


def default_name(topic_setting: str) -> str:
    """Return the broker setting that holds a topic setting's default."""
    return TOPIC_SETTINGS[topic_setting].of_brokers or f"log.{topic_setting}"


def name_of(key: Key) -> str:
    """Return the name that clients use for a configuration setting."""
    return _BY_KEY.get(key.name) or _FIXED_NAMES.get(key.name, key.name)


def check(name: str, text: str) -> None:
    """Raise InvalidSetting for an unknown name or an invalid value."""
    row = ROWS.get(name)
    if row is None:
        raise InvalidSetting(f"broker setting {name!r} is unknown or cannot be changed at run time")
    if len(text) > VALUE_CHARS_MAX:
        raise InvalidSetting(f"{name} takes at most {VALUE_CHARS_MAX} characters")
    if row.topic:
        _topic_value(row, text)
    elif row.key:
        _config_value(row, text)
    elif not text.isdecimal():
        raise InvalidSetting(f"{name} must be a whole number, not {text!r}")


def static_defaults(config: BrokerConfig) -> TopicSettings:
    """Return the topic settings that apply where nothing was set at run time."""
    return replace(DEFAULTS, min_cleanable_dirty_ratio=config.housekeeping.dirty_share_min)


def topic_defaults(static: TopicSettings, texts: Texts) -> TopicSettings:
    """Return the topic settings that apply to topics without their own."""
    rows = ((ROWS[name].topic, text) for name, text in texts.items() if name in ROWS)
    return resolve({topic: text for topic, text in rows if topic}, static)


def with_changes(config: BrokerConfig, texts: Texts) -> BrokerConfig:
    """Return the configuration with these changes; raises InvalidSetting."""
    values = dict(_by_section(texts))
    parts = {
        name: _changed(getattr(config, name), values[name])
        for name in OF_THE_BROKER
        if name in values
    }
    changed: BrokerConfig = _changed(config, {**values.get("broker", {}), **parts})
    return changed


def limits_with_changes(limits: LimitsConfig, texts: Texts) -> LimitsConfig:
    """Return the limits with these changes; raises InvalidSetting."""
    changed: LimitsConfig = _changed(limits, dict(_by_section(texts)).get("limits", {}))
    return changed


def is_list(name: str) -> bool:
    """Return whether items can be added to or removed from a setting."""
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
        # The sentence starts with the topic's name for the setting.
        raise InvalidSetting(row.name + str(error).removeprefix(row.topic)) from None


def _config_value(row: Row, text: str) -> Value:
    try:
        return parse(KEYS[row.key], text, row.name)
    except BadConfiguration as error:
        raise InvalidSetting(str(error)) from None


def type_of(row: Row) -> type[Any]:
    """Return the type of a setting's value."""
    if row.topic:
        return TOPIC_SETTINGS[row.topic].kind
    return KEYS[row.key].kind if row.key else int
