"""Settings of pipelines are typed, and wrong ones are named."""

import pytest

from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.pipelines.catalog import PIPELINES
from kafkaesque.spark.pipelines.enrich_events import EnrichSettings
from kafkaesque.spark.pipelines.metrics_events import MetricsSettings
from kafkaesque.spark.pipelines.settings import parse_settings


def test_settings_are_read_by_their_types() -> None:
    found = parse_settings(MetricsSettings, ["window_s=10", "topic=a=b"])
    assert found == MetricsSettings(window_s=10, topic="a=b")


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("speed=1", "the settings are dead_letter_topic"),
        ("window_s", "sets nothing"),
        ("window_s=x", "'x'"),
    ],
)
def test_a_wrong_setting_is_named(word: str, named: str) -> None:
    with pytest.raises(BadOption, match=named):
        parse_settings(MetricsSettings, [word])


def test_every_topic_of_the_settings_is_created_before_a_run() -> None:
    found = EnrichSettings(topic="o")
    assert found.topics[0] == "o"
    assert len(found.topics) == 6
    assert found.compacted == {"products"}


@pytest.mark.parametrize("name", [one.name for one in PIPELINES.values() if one.generate])
def test_the_same_seed_generates_the_same_data(name: str) -> None:
    generate = PIPELINES[name].generate
    assert generate is not None
    first, again, other = (list(generate(seed, 50, 0)) for seed in (1, 1, 2))
    assert first == again != other
    assert any(one.event is None for one in generate(1, 1_000, 0)), "some are broken"
