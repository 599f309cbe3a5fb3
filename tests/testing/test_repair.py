"""A real leader with a damaged closed segment steps down, is repaired, and leads again."""

# mypy: disable-error-code="no-untyped-call"

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.cli.main import run
from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId
from tests.complaints import WITHOUT_LEADERS

SECONDS_MAX = 400
"""A failed transfer, such as one to a damaged replica, is retried after 150 s."""
LOOK_EVERY_S = 0.1
COUNT = 120
VALUES = [b"%d" % number for number in range(COUNT)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        topic = NewTopic("orders", 1, 3, config={"segment.bytes": "1024"})
        admin.create_topics([topic])["orders"].result(SECONDS_MAX)
        producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 0})
        for value in VALUES:
            producer.produce("orders", value, partition=0)
            assert producer.flush(SECONDS_MAX) == 0
        yield running


def until(is_done: Callable[[], bool], what: str) -> None:
    """Check again and again; the time only ends a test that hangs."""
    deadline = time.monotonic() + SECONDS_MAX
    while not is_done():
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_EVERY_S)


def segments_of(cluster: Cluster, node: NodeId) -> list[Path]:
    return sorted(cluster.process(node).data.glob("orders.*/0/*.log"))


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(90)
        file.write(b"!!!!")


def metric(cluster: Cluster, node: NodeId, name: str) -> float:
    with urlopen(f"http://{cluster.address(node)}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return float(line.split()[1])


def read_all(cluster: Cluster) -> list[bytes | None]:
    settings = {"group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.assign([TopicPartition("orders", 0, 0)])
    found: list[bytes | None] = []
    until(lambda: len(append(found, consumer)) == COUNT, "not all records are read")
    consumer.close()
    return found


def append(found: list[bytes | None], consumer: Consumer) -> list[bytes | None]:
    for message in consumer.consume(COUNT, 0.2):
        assert message.error() is None
        found.append(message.value())
    return found


def is_healthy(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> bool:
    run(["doctor", "--bootstrap", cluster.bootstrap])
    return "damaged" not in capsys.readouterr().out


@WITHOUT_LEADERS
@pytest.mark.complains(
    "damage_found partition=orders.*",
    "repair_failed partition=orders.*",
    "problem kind=damaged: the copy of orders-0 is damaged: lost records are restored *",
)
def test_a_damaged_leader_steps_down_is_repaired_and_leads_again(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    leader = cluster.leader("orders")
    bad = segments_of(cluster, leader)[1]
    whole = bad.read_bytes()
    damage(bad)
    assert read_all(cluster) == VALUES
    said = cluster.process(leader).said
    until(lambda: "damage_found" in said(), "the damage is not found")
    until(lambda: "repair_done partition=orders." in said(), "it is not repaired")
    assert "repair_begun partition=orders." in said()
    assert metric(cluster, leader, "kafkaesque_repairs_done_total") == 1
    assert metric(cluster, leader, "kafkaesque_repairs_begun_total") >= 1
    assert metric(cluster, leader, "kafkaesque_replicas_damaged") == 0
    assert bad.read_bytes() == whole
    assert [path.name for path in bad.parent.glob("*.damaged")] == [f"{bad.name}.1.damaged"]
    until(lambda: is_healthy(cluster, capsys), "doctor still finds damage")
    until(lambda: cluster.leader("orders") == leader, "it does not lead again")
    assert read_all(cluster) == VALUES
    cluster.stop(leader)
    cluster.restart(leader)
    assert metric(cluster, leader, "kafkaesque_replicas_damaged") == 0
