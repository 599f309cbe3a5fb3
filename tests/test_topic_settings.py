"""Topic settings are read as clients write them, and invalid ones are refused in one sentence."""

import pytest

from kafkaesque.errors import InvalidSetting
from kafkaesque.topic_settings import (
    DEFAULTS,
    TOPIC_SETTINGS,
    CleanupPolicy,
    FlushPolicy,
    resolve,
    value_text,
)


def test_unset_settings_have_the_defaults() -> None:
    assert resolve({}) == DEFAULTS
    assert resolve({}).flush_policy is FlushPolicy.ALWAYS


def test_names_and_values_are_those_of_kafka() -> None:
    settings = resolve({"retention.ms": "-1", "cleanup.policy": "compact", "segment.bytes": "2048"})
    assert (settings.retention_ms, settings.segment_bytes) == (-1, 2048)
    assert settings.cleanup_policy is CleanupPolicy.COMPACT


@pytest.mark.parametrize("text", ["compact,delete", "delete,compact", "delete, compact"])
def test_cleanup_policies_come_in_any_order(text: str) -> None:
    assert resolve({"cleanup.policy": text}).cleanup_policy is CleanupPolicy.BOTH


@pytest.mark.parametrize("name", TOPIC_SETTINGS)
def test_every_value_is_read_back_as_it_is_shown(name: str) -> None:
    assert resolve({name: value_text(DEFAULTS, name)}) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("colour", "blue"),
        ("retention_ms", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", "-2"),
        ("segment.bytes", "0"),
        ("segment.bytes", str(1 << 31)),
        ("cleanup.policy", "burn"),
        ("compression.type", ""),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "half"),
    ],
)
def test_an_invalid_value_is_refused_with_the_settings_name(name: str, text: str) -> None:
    with pytest.raises(InvalidSetting, match=name):
        resolve({name: text})
