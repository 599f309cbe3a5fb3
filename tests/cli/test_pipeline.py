"""The pipelines from the command line."""

import importlib.util
import json

import pytest

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import LATEST
from kafkaesque.spark.pipelines.catalog import PIPELINES
from kafkaesque.testing import Broker


def test_the_list_names_every_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == list(PIPELINES)
    assert rows[0]["topic"] == "clicks"


def test_the_settings_of_a_pipeline_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "settings", "metrics", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"name": "window_s", "default": "60"} in rows


def test_a_pipeline_with_several_topics_gets_records_for_each(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline", "generate", "enrich", "--count", "100", "--set", "topic=my-orders"]
    assert run([*words, "--bootstrap", broker.bootstrap]) == 0
    assert "to topic my-orders" in capsys.readouterr().out
    with Admin(broker.bootstrap) as admin:
        places = [
            place
            for name in ("my-orders", "products", "payments")
            for place in admin.topics.describe(name).places
        ]
        ends = admin.topics.offsets(places, LATEST)
        by_topic = {topic: 0 for topic, _ in ends}
        for (topic, _), offset in ends.items():
            by_topic[topic] += offset
        assert by_topic["my-orders"] == 100
        assert by_topic["products"] == 40
        assert by_topic["payments"] > 50
        policy = [
            one.value for one in admin.topics.settings("products") if one.name == "cleanup.policy"
        ]
        assert policy == ["compact"]


def test_a_wrong_setting_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "generate", "metrics", "--set", "pace=3"]) == 1
    assert "the settings are dead_letter_topic" in capsys.readouterr().err


def test_generated_records_are_in_the_topic(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline", "generate", "activity", "--count", "300", "--bootstrap", broker.bootstrap]
    assert run(words) == 0
    assert "sent 300 records to topic clicks" in capsys.readouterr().out
    with Admin(broker.bootstrap) as admin:
        places = admin.topics.describe("clicks").places
        assert sum(admin.topics.offsets(places, LATEST).values()) == 300


def test_an_unknown_pipeline_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "run", "nothing"]) == 2
    assert "activity" in capsys.readouterr().err


@pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is not None, reason="Spark is installed here"
)
def test_without_spark_one_sentence_says_what_to_install(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["pipeline", "run", "activity"]) == 1
    assert capsys.readouterr().err == (
        "kafkaesque: Spark is not installed: install kafkaesque-broker with the extra spark\n"
    )
