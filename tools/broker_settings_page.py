"""The reference page of brokers' settings that can be changed while they run."""

from collections.abc import Iterator
from enum import StrEnum

from kafkaesque.dynamic_settings import ROWS, Row
from kafkaesque.settings import KEYS, range_of
from kafkaesque.topic_settings import DEFAULTS, reasons, value_text
from tools import topic_settings_page

_HEAD = """\
# Settings of brokers that can be changed while they run

Every such setting with its default, and where it acts. Generated from
`src/kafkaesque/dynamic_settings.py` by `make docs`; do not edit.

They are changed with Kafka's own tools and clients (IncrementalAlterConfigs and AlterConfigs of
type BROKER) or with `kafkaesque broker alter`; [the how-to](../how-to/change-settings.md) has
examples. A change acts at once, survives restarts, and is for one broker, or for all if none is
named. What holds is the first of these that is set:

1. what was set for the broker (`DYNAMIC_BROKER_CONFIG`);
2. what was set for all brokers (`DYNAMIC_DEFAULT_BROKER_CONFIG`);
3. [its configuration](config.md): a flag, a variable or the file (`STATIC_BROKER_CONFIG`);
4. the default (`DEFAULT_CONFIG`).

A setting has Kafka's name where Kafka has it, else its key in the configuration file. Some of
them Kafka lets nobody change while it runs: `num.partitions`, `auto.create.topics.enable`,
`connections.max.idle.ms`, those of groups, transactions and fetches, and
`log.retention.check.interval.ms`. All other settings that a broker tells are read-only: to
change one is refused with INVALID_REQUEST. A value that cannot be, and a name that does not
exist, are refused with INVALID_CONFIG.

The cluster must have finalised `catalog.version` 4 (`kafkaesque cluster upgrade`): older
brokers do not know such settings. What was set for a broker is forgotten when it is removed
from the cluster.

`draining` is a setting of one broker, too: [`kafkaesque cluster drain`](cli.md) sets it.

| setting | in the configuration | default | values | where it acts |
|---|---|---|---|---|
"""
_DEFAULTS_HEAD = """
## Defaults of topics

These hold for every topic that does not set the setting of topics itself, those that exist
included. Each broker uses its own for the partitions that it holds. The internal topics are
always synced, and nothing of them is deleted by age or size, whatever is set.

| setting | of topics | default | values | what it does |
|---|---|---|---|---|
"""
_LOGGERS = """
## Loggers

The level from which on a part of a broker writes to its log is changed with
IncrementalAlterConfigs of type BROKER_LOGGER, or with `kafkaesque broker log`. Levels are
TRACE, DEBUG, INFO, WARN, ERROR and FATAL. A logger is a module, such as
`kafkaesque.server.connection`; one without a level of its own has that of the module above it,
and in the end that of `root`. Levels are not kept: a broker that starts again has INFO for all.
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
            reason = reasons().get(row.topic, "").replace("|", "\\|")
            yield f"| `{name}` | `{row.topic}` | `{default}` | {values} | {reason} |\n"


def render() -> str:
    """Return the page."""
    return _HEAD + "".join(_rows()) + _DEFAULTS_HEAD + "".join(_topic_rows()) + _LOGGERS
