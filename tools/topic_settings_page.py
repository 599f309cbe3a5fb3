"""The reference page of topics' settings, made from topic_settings.py."""

from collections.abc import Iterator

from kafkaesque.topic_settings import (
    DEFAULTS,
    NAMES,
    kind_of,
    level_of,
    range_of,
    reasons,
    value_text,
)

_HEAD = """\
# Settings of topics

Every setting of a topic with its default and what it does. Generated from
`src/kafkaesque/topic_settings.py` by `make docs`; do not edit.

Names and meanings are Kafka's, but for `flush.policy`, which is ours. A setting that is not in this
table is refused, never silently kept. Those that say *without effect* are taken because Kafka's
tools set them. A *level* is the `catalog.version` that a cluster must have finalised first
(`kafkaesque cluster upgrade`): older brokers do not know the setting.
[How to administer topics](../how-to/administer-topics.md) shows how to set them.

| setting | default | values | level | what it does |
|---|---|---|---|---|
"""
_UNLIMITED = 1 << 62


def undocumented() -> list[str]:
    """Return the settings of which nothing says what they do."""
    return [name for name in NAMES if name not in reasons()]


def values(name: str) -> str:
    """Return what a setting may be."""
    kind = kind_of(name)
    if kind is float:
        return "0 to 1"
    if kind is str:
        return "`*`, or a list such as `0:1,1:2`"
    if kind is not int:
        return ", ".join(f"`{value}`" for value in kind)
    smallest, largest = range_of(name)
    return f"{smallest:,} and more" if largest > _UNLIMITED else f"{smallest:,} to {largest:,}"


def _rows() -> Iterator[str]:
    for name in NAMES:
        reason = reasons().get(name, "").replace("|", "\\|")
        default, level = value_text(DEFAULTS, name), level_of(name)
        yield f"| `{name}` | `{default}` | {values(name)} | {level} | {reason} |\n"


def render() -> str:
    """Return the page."""
    return _HEAD + "".join(_rows())
