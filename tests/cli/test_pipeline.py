"""The pipelines from the command line."""

import importlib.util
import json

import pytest

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import LATEST
from kafkaesque.testing import Broker


def test_the_list_names_every_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["name"], row["topic"]) for row in rows] == [("activity", "clicks")]


def test_made_up_records_are_in_the_topic(
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
