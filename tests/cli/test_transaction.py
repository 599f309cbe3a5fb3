"""`kafkaesque transaction` against a real broker."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from kafkaesque.cli.main import run
from kafkaesque.client.admin import Admin
from kafkaesque.client.prepared import PreparedTransaction
from kafkaesque.record.view import Codec
from kafkaesque.testing import Broker
from tests.client.batches import committed, encoded

SECONDS_MAX = 120


@pytest.fixture(name="broker")
def _broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def begun(broker: Broker) -> Producer:
    """A producer with an open transaction in one partition."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "billing-0", "log_level": 0}
    )
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("orders", "x", partition=1)
    assert producer.flush(SECONDS_MAX) == 0
    return producer


def told(broker: Broker, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    code = run(["transaction", *words, "--bootstrap", broker.bootstrap])
    return code, capsys.readouterr().out.splitlines()


def test_open_transactions_are_listed_and_described(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = begun(broker)
    code, lines = told(broker, capsys, "list", "--state", "Ongoing", "--json")
    assert code == 0
    assert [json.loads(line)["transaction"] for line in lines] == ["billing-0"]
    code, lines = told(broker, capsys, "describe", "billing-0", "--json")
    assert code == 0
    found = json.loads(lines[0])
    assert (found["state"], found["epoch"]) == ("Ongoing", 0)
    producer.abort_transaction(SECONDS_MAX)


@pytest.mark.parametrize(("how", "state"), [("commit", "Commit"), ("abort", "Abort")])
def test_an_open_transaction_is_ended_by_hand_and_its_producer_fenced(
    broker: Broker, capsys: pytest.CaptureFixture[str], how: str, state: str
) -> None:
    producer = begun(broker)
    code, lines = told(broker, capsys, how, "billing-0")
    assert code == 1, "without --yes it is only shown"
    assert any("Ongoing" in line for line in lines)
    code, lines = told(broker, capsys, how, "billing-0", "--yes")
    assert code == 0
    assert lines == [f"the transaction of billing-0 was {how}{'t' * (how == 'commit')}ed"]
    if how == "commit":
        _, lines = told(broker, capsys, "list")
        assert state in lines[-1]
    with pytest.raises(KafkaException):
        producer.commit_transaction(SECONDS_MAX)
    code, lines = told(broker, capsys, how, "billing-0", "--yes")
    assert code == 1, "there is nothing open any more"


def test_an_unused_id_is_not_found(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["transaction", "describe", "none", "--bootstrap", broker.bootstrap])
    assert code == 1
    assert "transactional id none: it was never used" in capsys.readouterr().err


def prepared(broker: Broker) -> PreparedTransaction:
    """A transaction that the nightly load will end."""
    with Admin(broker.bootstrap) as admin:
        admin.topics.create("orders", partitions=2)
        producer = admin.transactional_producer("billing-0", Codec.NONE, timeout_ms=60_000)
        producer.send({("orders", 1): encoded(b"x")})
        return producer.prepare("the nightly load")


def test_a_prepared_transaction_is_shown_with_its_owner_and_waiting_time(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared(broker)
    code, lines = told(broker, capsys, "list", "--state", "Prepared", "--json")
    assert code == 0
    [found] = [json.loads(line) for line in lines]
    assert found["owner"] == "the nightly load"
    assert 0 <= found["waits_s"] <= SECONDS_MAX
    code, lines = told(broker, capsys, "describe", "billing-0", "--json")
    assert code == 0
    found = json.loads(lines[0])
    assert (found["state"], found["owner"]) == ("Prepared", "the nightly load")
    assert found["aborted at"] > found["began"]


@pytest.mark.parametrize(("how", "is_seen"), [("commit", True), ("abort", False)])
def test_a_prepared_transaction_can_be_ended_by_hand(
    broker: Broker, capsys: pytest.CaptureFixture[str], how: str, is_seen: bool
) -> None:
    prepared(broker)
    code, _ = told(broker, capsys, how, "billing-0", "--yes")
    assert code == 0
    assert committed(broker.bootstrap, "orders", 1) == ([b"x"] if is_seen else [])
