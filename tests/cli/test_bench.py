"""`kafkaesque bench` against a real broker."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Broker

pytestmark = pytest.mark.compat

SECONDS_MAX = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        with Admin(running.bootstrap) as admin:
            for topic in ("sent", "paced", "followed", "empty"):
                admin.topics.create(topic, partitions=2)
        yield running


def bench(broker: Broker, *words: str) -> dict[str, object]:
    """Run it in a separate process and return the JSON that it prints."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kafkaesque", "bench", *words),
            *("--bootstrap", broker.bootstrap, "--json"),
        ],
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_sent_messages_are_read_back(broker: Broker) -> None:
    sent = bench(broker, "produce", "sent", "--count", "5000", "--size", "50")
    assert sent["messages"] == 5000
    read = bench(broker, "consume", "sent")
    assert read["messages"] == 5000


def test_a_rate_is_kept_and_acknowledgements_are_timed(broker: Broker) -> None:
    words = ("produce", "paced", "--rate", "200", "--seconds", "0.5", "--acks", "1")
    found = bench(broker, *words)
    assert found["messages"] == 100
    latencies = found["latency_ms"]
    assert isinstance(latencies, dict)
    assert 0 < latencies["p50"] <= latencies["p99"] <= latencies["max"]


def test_end_to_end_latency_is_measured_for_every_message(broker: Broker) -> None:
    found = bench(broker, "latency", "followed", "--rate", "200", "--seconds", "0.5")
    assert found["messages"] == 100
    latencies = found["latency_ms"]
    assert isinstance(latencies, dict)
    assert 0 < latencies["p50"] <= latencies["max"]


def test_a_terminal_gets_a_sentence(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "produce", "sent", "--count", "10", "--bootstrap", broker.bootstrap]
    assert run(words) == 0
    assert capsys.readouterr().out.startswith("sent 10 messages in ")


def test_an_empty_topic_cannot_be_read(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "consume", "empty", "--bootstrap", broker.bootstrap]) == 1
    assert "holds no messages" in capsys.readouterr().err


def test_a_missing_topic_is_not_created(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "produce", "unknown", "--bootstrap", broker.bootstrap]) == 1
    assert "unknown" in capsys.readouterr().err
