"""The broker for tests is the real one: quick to start, clean to stop, with its errors raised."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.errors import CannotListen, FolderInUse
from kafkaesque.testing import Broker

SECONDS_MAX = 120
TRIES = 5


def produce(broker: Broker, topic: str, *values: bytes, seconds: float = SECONDS_MAX) -> None:
    """Send values to partition 0; fails unless all are acknowledged in this time."""
    timeout_ms = int(1_000 * seconds)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": timeout_ms})
    failures: list[object] = []

    def told(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=told)
    producer.flush(2 * SECONDS_MAX)
    assert failures == []


def consume(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    """Return the first values of partition 0."""
    settings = {"group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, SECONDS_MAX)
    consumer.close()
    return [message.value() for message in messages]


def test_an_unmodified_client_produces_and_consumes() -> None:
    with Broker() as broker:
        produce(broker, "letters", b"a", b"b")
        assert consume(broker, "letters", 2) == [b"a", b"b"]


def test_it_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    with Broker() as broker:
        folder = broker.data
        assert folder.exists()
    assert not folder.exists()
    assert set(threading.enumerate()) <= before


def test_it_starts_sooner_than_python_does() -> None:
    """In about 10 ms; compared because machines differ, and the best of some because they stall."""
    ours, pythons = [], []
    for _ in range(TRIES):
        started = time.perf_counter()
        with Broker():
            ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
        pythons.append(time.perf_counter() - started)
    assert min(ours) < min(pythons)


def test_records_are_kept_in_the_given_folder(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        produce(broker, "letters", b"kept")
    with Broker(str(tmp_path)) as broker:
        assert consume(broker, "letters", 1) == [b"kept"]


def test_it_stops_and_restarts_on_its_port_with_its_records() -> None:
    with Broker() as broker:
        port = broker.port
        produce(broker, "letters", b"a")
        broker.stop()
        assert not broker.is_running
        broker.start()
        assert broker.port == port
        produce(broker, "letters", b"b")
        assert consume(broker, "letters", 2) == [b"a", b"b"]


def test_several_brokers_run_independently_side_by_side() -> None:
    with Broker() as first, Broker() as second, Broker() as third:
        brokers = (first, second, third)
        assert len({broker.port for broker in brokers}) == 3
        for number, broker in enumerate(brokers):
            produce(broker, "letters", str(number).encode())
        found = [consume(broker, "letters", 1) for broker in brokers]
        assert found == [[b"0"], [b"1"], [b"2"]]


def test_topics_are_created_with_the_brokers_defaults() -> None:
    with Broker(auto_create_topics=False, partitions_default=7) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        with pytest.raises(AssertionError):
            produce(broker, "letters", b"x", seconds=1)
        admin.create_topics([NewTopic("letters", -1)])["letters"].result(SECONDS_MAX)
        assert len(admin.list_topics("letters", SECONDS_MAX).topics["letters"].partitions) == 7


def test_an_obstacle_to_the_start_is_raised(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        with pytest.raises(CannotListen), Broker(port=broker.port):
            pass
        with pytest.raises(FolderInUse):
            Broker(tmp_path).start()
        produce(broker, "letters", b"unharmed")


def test_a_broker_that_could_not_start_can_be_started_later() -> None:
    with Broker() as first:
        second = Broker(port=first.port)
        with pytest.raises(CannotListen):
            second.start()
    with second:
        produce(second, "letters", b"x")


def test_an_error_of_the_test_is_not_hidden_and_the_broker_stops() -> None:
    with pytest.raises(KafkaException), Broker() as broker:
        raise KafkaException("the test's own")
    assert not broker.is_running


def test_a_test_that_forgets_to_stop_it_still_ends() -> None:
    program = "from kafkaesque.testing import Broker; b = Broker(); b.start(); print(b.port)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=SECONDS_MAX, check=True
    )
    assert int(done.stdout) > 0


FAILING_DISK = """
import resource
from kafkaesque.errors import LogError
from kafkaesque.testing import Broker
from tests.testing.test_broker import produce

broker = Broker()
broker.start()
produce(broker, "letters", b"x")
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    produce(broker, "letters", b"y", seconds=1)
except AssertionError:
    pass
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    broker.close()
except LogError as error:
    print("told:", error)
"""


def test_a_disk_failure_is_raised_when_the_broker_stops() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING_DISK],
        capture_output=True,
        text=True,
        timeout=3 * SECONDS_MAX,
        check=False,
    )
    assert done.stdout.startswith("told:"), done.stderr
