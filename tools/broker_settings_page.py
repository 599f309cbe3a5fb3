"""The reference page of brokers' settings that can be changed while they run."""

from collections.abc import Iterator
from enum import StrEnum

from kafkaesque.dynamic_settings import ROWS, Row
from kafkaesque.settings import KEYS, range_of
from kafkaesque.topic_settings import DEFAULTS, value_text
from tools import topic_settings_page

_HEAD = """\
# Settings of brokers that can be changed while they run

Every such setting with its default, and where it takes effect. Generated from
`src/kafkaesque/dynamic_settings.py` by `make docs`; do not edit.

Change them with Kafka's own tools and clients (IncrementalAlterConfigs and AlterConfigs of type
BROKER) or with `kafkaesque broker alter`; [the how-to](../how-to/change-settings.md) has examples.
A change takes effect at once, survives restarts, and is for one broker, or for all if none is
named. The first of these that is set applies:

1. the value set for the broker (`DYNAMIC_BROKER_CONFIG`);
2. the value set for all brokers (`DYNAMIC_DEFAULT_BROKER_CONFIG`);
3. [its configuration](config.md): a flag, a variable or the file (`STATIC_BROKER_CONFIG`);
4. the default (`DEFAULT_CONFIG`).

A setting has Kafka's name if Kafka has it, else its key in the configuration file. Kafka does not
allow changing some of them at run time: `num.partitions`, `auto.create.topics.enable`,
`connections.max.idle.ms`, those of groups, transactions and fetches, and
`log.retention.check.interval.ms`. All other settings that a broker reports are read-only: changing
one is refused with INVALID_REQUEST. Invalid values and unknown names are refused with
INVALID_CONFIG.

The cluster must have finalised `catalog.version` 4 (`kafkaesque cluster upgrade`): older
brokers do not know such settings. The settings of a broker are deleted when it is removed from the
cluster.

`draining` is also a setting of one broker: [`kafkaesque cluster drain`](cli.md) sets it.

| setting | in the configuration | default | values | where it takes effect |
|---|---|---|---|---|
"""
_DEFAULTS_HEAD = """
## Defaults of topics

These apply to every topic, new or existing, that does not set the topic setting itself. Each broker
uses its own for the partitions that it holds. The internal topics are always synced, and are never
deleted from by age or size, whatever is set.

| setting | of topics | default | values | what it does |
|---|---|---|---|---|
"""
_LOGGERS = """
## Loggers

The log level of a part of a broker is changed with IncrementalAlterConfigs of type BROKER_LOGGER,
or with `kafkaesque broker log`. Levels are TRACE, DEBUG, INFO, WARN, ERROR and FATAL. A logger is a
module, such as `kafkaesque.server.edge.connection`, or a component of [events](events.md), such as
`kafkaesque.events.raft`; one without its own level inherits that of the module above it, and
finally that of `root`. Levels are not kept: after a restart all are INFO.
"""
_UNLIMITED = 1 << 62


def _values(row: Row) -> str:
    if not row.key:
        return "0 and more"
    key = KEYS[row.key]
    if key.kind is bool:
        return "`false`, `true`"
    if issubclass(key.kind, StrEnum):
        return ", ".join(f"`{value}`" for value in key.kind)
    smallest, largest = range_of(key)
    return f"{smallest:,} and more" if largest > _UNLIMITED else f"{smallest:,} to {largest:,}"


def _default(row: Row) -> str:
    if not row.key:
        return ""
    value = KEYS[row.key].default
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _rows() -> Iterator[str]:
    for name, row in ROWS.items():
        if not row.topic:
            key = f"`{row.key}`" if row.key else ""
            yield f"| `{name}` | {key} | {_default(row)} | {_values(row)} | {row.text} |\n"


def _topic_rows() -> Iterator[str]:
    for name, row in ROWS.items():
        if row.topic:
            default, values = value_text(DEFAULTS, row.topic), topic_settings_page.values(row.topic)
            reason = topic_settings_page.does(row.topic)
            yield f"| `{name}` | `{row.topic}` | `{default}` | {values} | {reason} |\n"


def render() -> str:
    """Return the page."""
    return _HEAD + "".join(_rows()) + _DEFAULTS_HEAD + "".join(_topic_rows()) + _LOGGERS
