"""`kafkaesque log repair` on the folder of a real broker that has the only copy of a partition."""

# mypy: disable-error-code="no-untyped-call"

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.cli.main import run
from kafkaesque.testing.process import BrokerProcess

SECONDS_MAX = 120
COUNT = 60


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A stopped broker with a partition of several segments."""
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic = NewTopic("orders", 1, 1, config={"segment.bytes": "1024"})
        admin.create_topics([topic])["orders"].result(SECONDS_MAX)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        for number in range(COUNT):
            producer.produce("orders", b"%d" % number, partition=0)
            assert producer.flush(SECONDS_MAX) == 0
        broker.stop()
        yield broker
    finally:
        if broker.is_running:
            broker.stop()


def segment(broker: BrokerProcess, place: int) -> Path:
    return sorted(broker.data.glob("orders.*/0/*.log"))[place]


def repair(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["log", "repair", "--data", str(broker.data), "orders", "0", *words])
    out, err = capsys.readouterr()
    return code, out, err


def read_all(broker: BrokerProcess, last: int) -> list[int]:
    settings = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
    consumer.assign([TopicPartition("orders", 0, 0)])
    found: list[int] = []
    while not found or found[-1] < last:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None and message.error() is None
        found.append(int(message.value() or b"-1"))
        assert message.offset() == found[-1]
    consumer.close()
    return found


@pytest.mark.complains("problem kind=given-up: *")
def test_lost_records_are_shown_then_given_up_and_reported_by_doctor(
    stopped: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert repair(stopped, capsys)[0] == 0
    bad = segment(stopped, 1)
    with bad.open("r+b") as file:
        file.seek(90)
        file.write(b"!!!!")
    damaged = bad.read_bytes()
    code, out, _ = repair(stopped, capsys, "--json")
    loss = json.loads(out.splitlines()[0])
    assert code == 1 and loss["records"] == loss["end"] - loss["first"] == 1
    assert loss["file"].endswith(bad.name) and loss["bytes"] > 60
    assert bad.read_bytes() == damaged
    code, out, _ = repair(stopped, capsys, "--yes")
    assert code == 0 and "continues without 1 record" in out
    assert repair(stopped, capsys)[0] == 0
    (aside,) = bad.parent.glob("*.damaged")
    assert aside.read_bytes() == damaged
    stopped.start()
    kept = [number for number in range(COUNT) if number != loss["first"]]
    assert read_all(stopped, COUNT - 1) == kept
    run(["doctor", "--bootstrap", stopped.bootstrap])
    told = " ".join(capsys.readouterr().out.split())
    assert f"gave up the offsets [{loss['first']}, {loss['end']}) of orders-0" in told


def test_running_brokers_and_missing_partitions_are_refused(
    stopped: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["log", "repair", "--data", str(stopped.data), "orders", "7"])
    assert code != 0 and "0 partitions 7 of a topic orders" in capsys.readouterr().err
    stopped.start()
    code, _, err = repair(stopped, capsys, "--yes")
    assert code != 0 and err
