"""Which broker settings can be changed at run time: names, values, contradictions."""

import pytest

from kafkaesque.config import BrokerConfig, HousekeepingConfig
from kafkaesque.dynamic_settings import (
    ROWS,
    THROTTLES,
    VALUE_CHARS_MAX,
    check,
    limits_with_changes,
    static_defaults,
    topic_defaults,
    with_changes,
)
from kafkaesque.errors import InvalidSetting
from kafkaesque.server_config import LimitsConfig
from kafkaesque.settings import KEYS
from kafkaesque.topic_settings import DEFAULTS, TOPIC_SETTINGS


def test_each_row_names_an_existing_key_or_a_topic_setting_or_has_no_effect() -> None:
    for name, row in ROWS.items():
        assert row.name == name
        assert not (row.key and row.topic)
        if row.key:
            assert row.key in KEYS
        elif row.topic:
            assert row.topic in TOPIC_SETTINGS
        else:
            assert "without effect" in row.text


def test_no_two_rows_are_for_the_same_setting() -> None:
    stands_for = [row.key or row.topic for row in ROWS.values() if row.key or row.topic]
    assert len(set(stands_for)) == len(stands_for)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("no.such", "1", "setting 'no.such'"),
        ("log.dirs", "/elsewhere", "setting 'log.dirs'"),
        ("max.connections", "many", "max.connections must be a whole number"),
        ("max.connections", "0", "max.connections must be from 1 to"),
        ("max.connections", "1" * (VALUE_CHARS_MAX + 1), "at most 100 characters"),
        ("auto.create.topics.enable", "perhaps", "auto.create.topics.enable must be true or false"),
        ("group.consumer.migration.policy", "never", "must be one of disabled, upgrade"),
        ("log.retention.ms", "soon", "log.retention.ms must be a whole number"),
        ("log.retention.ms", "-2", "log.retention.ms must be from -1"),
        ("log.cleaner.min.cleanable.ratio", "2", "cleanable.ratio must be from 0 to 1"),
        ("follower.replication.throttled.rate", "fast", "must be a whole number"),
    ],
)
def test_an_invalid_value_is_refused_with_the_settings_name(
    name: str, text: str, said: str
) -> None:
    with pytest.raises(InvalidSetting, match=said):
        check(name, text)


def test_every_throttle_of_kafkas_tools_is_accepted() -> None:
    assert THROTTLES
    for name in THROTTLES:
        check(name, "1000000")
        with pytest.raises(InvalidSetting, match="must be a whole number"):
            check(name, "fast")


def test_settings_of_several_sections_change_together_and_the_rest_stays() -> None:
    before = BrokerConfig(housekeeping=HousekeepingConfig(check_interval_ms=7))
    after = with_changes(
        before,
        {
            "num.partitions": "9",
            "group.max.size": "3",
            "log.retention.ms": "5",
            "max.connections": "5",
            "follower.replication.throttled.rate": "5",
        },
    )
    assert (after.partitions_default, after.groups.members_max) == (9, 3)
    assert after.housekeeping == before.housekeeping
    assert after.auto_create_topics is before.auto_create_topics
    assert limits_with_changes(LimitsConfig(), {"max.connections": "5"}).connections_max == 5


def test_contradictions_are_refused_under_the_names_that_clients_know() -> None:
    with pytest.raises(InvalidSetting, match=r"group\.min\.session\.timeout\.ms is 9 and must be"):
        with_changes(
            BrokerConfig(),
            {"group.min.session.timeout.ms": "9", "group.max.session.timeout.ms": "8"},
        )


def test_the_configuration_file_sets_the_defaults_of_topics() -> None:
    static = static_defaults(BrokerConfig(housekeeping=HousekeepingConfig(dirty_share_min=0.25)))
    assert static.min_cleanable_dirty_ratio == 0.25
    texts = {"log.cleaner.min.cleanable.ratio": "0.5", "group.max.size": "3"}
    assert topic_defaults(static, texts) == DEFAULTS
