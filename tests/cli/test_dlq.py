"""`kafkaesque dlq` against a real broker with dead letters."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from kafkaesque.cli.main import cli, run
from kafkaesque.patterns import Delivery, RetryPlan, WorkerSettings, worker
from kafkaesque.patterns.dead_letter import (
    ATTEMPTS,
    DIGEST,
    ERROR,
    FAILED_AT,
    GROUP,
    ORIGIN_OFFSET,
    ORIGIN_PARTITION,
    ORIGIN_TIMESTAMP,
    ORIGIN_TOPIC,
    REASON,
)
from kafkaesque.testing import Broker
from tests.patterns import waiting

pytestmark = pytest.mark.compat

DEAD = "mail.mail.dlq"
KEPT_MS = 3_600_000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(partitions_default=1) as broker:
        waiting.run(bury(broker.bootstrap))
        yield broker.bootstrap


async def bury(bootstrap: str) -> None:
    """Let a worker bury three messages."""

    async def refuse(delivery: Delivery) -> None:
        raise (KeyError if delivery.text == "a" else ValueError)("no")

    settings = WorkerSettings(retries=RetryPlan(delays_ms=()), dead_letter_retention_ms=KEPT_MS)
    async with worker(bootstrap, "mail", refuse, settings=settings) as one:
        await waiting.send_all(bootstrap, "mail", "a", "b", "c", key="k")
        await waiting.until(lambda: one.dead == 3)


def call(bootstrap: str, *words: str) -> Result:
    return CliRunner().invoke(cli, ["dlq", *words, "--bootstrap", bootstrap], standalone_mode=False)


@pytest.mark.requirement("PAT-5")
def test_dead_letters_are_listed_shown_and_sent_back_once(bootstrap: str) -> None:
    assert call(bootstrap, "list").stdout == f"{DEAD}\t3\t3\n"

    shown = [
        json.loads(line) for line in call(bootstrap, "show", DEAD, "--json").stdout.splitlines()
    ]
    assert [one["value"] for one in shown] == ["a", "b", "c"]
    assert [one["error"] for one in shown] == ["KeyError", "ValueError", "ValueError"]
    assert [one["origin"] for one in shown] == ["mail:0:0", "mail:0:1", "mail:0:2"]

    preview = call(bootstrap, "redrive", DEAD, "--error", "ValueError")
    assert preview.return_value == 1
    assert "nothing was changed" in preview.stderr
    assert call(bootstrap, "list").stdout == f"{DEAD}\t3\t3\n"

    done = call(bootstrap, "redrive", DEAD, "--error", "ValueError", "--yes", "--json")
    assert done.return_value == 0
    assert json.loads(done.stdout)["moved"] == 2
    assert call(bootstrap, "list").stdout == f"{DEAD}\t3\t1\n"
    [left] = call(bootstrap, "show", DEAD).stdout.splitlines()
    assert left.startswith("0:0\tmail:0:0\tKeyError")


@pytest.mark.requirement("PAT-5")
def test_dead_letters_are_kept_for_the_configured_time(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    [future] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, DEAD)]).values()
    assert future.result(10)["retention.ms"].value == str(KEPT_MS)


def test_a_letter_with_an_invalid_time_is_shown_without_it(bootstrap: str) -> None:
    texts = (ORIGIN_TOPIC, ERROR, REASON, DIGEST, GROUP)
    numbers = (ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP, ATTEMPTS)
    headers = (*((name, b"x") for name in texts), *((name, b"1") for name in numbers))
    headers = (*headers, (FAILED_AT, b"9" * 18))
    waiting.run(waiting.send_all(bootstrap, "strange", "a", headers=headers))
    assert call(bootstrap, "show", "strange").stdout == "0:0\tx:1:1\tx\tx\t1\t0\t-\tx\n"


def test_a_missing_topic_is_reported(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dlq", "show", "none.dlq", "--bootstrap", bootstrap]) == 1
    assert "there is no topic none.dlq" in capsys.readouterr().err


def test_an_invalid_position_is_wrong_usage(bootstrap: str) -> None:
    assert run(["dlq", "redrive", DEAD, "--at", "here", "--bootstrap", bootstrap]) == 2


def test_an_unreachable_broker_is_reported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dlq", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err
