"""The reference page of topics' settings, generated from topic_settings.py."""

from collections.abc import Iterator

from kafkaesque.topic_settings import DEFAULTS, TOPIC_SETTINGS, value_text

_HEAD = """\
# Settings of topics

Every setting of a topic with its default and what it does. Generated from
`src/kafkaesque/topic_settings.py` by `make docs`; do not edit.

Names and meanings are Kafka's, except for `flush.policy`, which is ours. A setting that is not in
this table is refused, never silently kept. Those marked *without effect* are accepted because
Kafka's tools set them. A *level* is the `catalog.version` that a cluster must have finalised first
(`kafkaesque cluster upgrade`): older brokers do not know the setting.
[How to administer topics](../how-to/administer-topics.md) shows how to set them.

| setting | default | values | level | what it does |
|---|---|---|---|---|
"""
_UNLIMITED = 1 << 62


def values(name: str) -> str:
    """Return the allowed values of a setting."""
    row = TOPIC_SETTINGS[name]
    if row.kind is str:
        return "`*`, or a list such as `0:1,1:2`"
    if row.kind not in (int, float):
        return ", ".join(f"`{value}`" for value in row.kind)
    return f"{row.least:,} and more" if row.most > _UNLIMITED else f"{row.least:,} to {row.most:,}"


def does(name: str) -> str:
    """Return the effect of a setting, for a table cell."""
    return TOPIC_SETTINGS[name].does.replace("|", "\\|")


def _rows() -> Iterator[str]:
    for name, row in TOPIC_SETTINGS.items():
        default = value_text(DEFAULTS, name)
        yield f"| `{name}` | `{default}` | {values(name)} | {row.level} | {does(name)} |\n"


def render() -> str:
    """Return the page."""
    return _HEAD + "".join(_rows())
