"""An application that uses all of a cluster does not notice its failures and growth.

A producer, a consumer group of two members and an administrator work without end, each with the
default settings of its library, while brokers die and return, a new one takes over partitions, the
topic gets more partitions and a broker is removed. None of their calls fails, except for a change
whose answer dies with its broker, and nothing is lost.
"""

import threading
import time
from collections.abc import Callable
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from bench.rolling_restart import TOPIC, Load, create
from kafkaesque.client.admin import Admin
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

pytestmark = WITHOUT_LEADERS

PARTITIONS = 6
MORE_PARTITIONS = 9
SECONDS_MAX = 120
LOOK_EVERY_S = 0.2


class Work(threading.Thread):
    """Repeats an operation until it is stopped; keeps what failed."""

    def __init__(self, failures: list[str]) -> None:
        super().__init__(daemon=True)
        self._failures = failures
        self._is_ended = threading.Event()

    def run(self) -> None:
        try:
            for number in count():
                if self._is_ended.is_set():
                    return
                self.turn(number)
        except KafkaException as error:
            self._failures.append(f"{type(self).__name__}: {error}")

    def turn(self, number: int) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self._is_ended.set()
        self.join(SECONDS_MAX)
        assert not self.is_alive(), f"{type(self).__name__} hangs"


class Member(Work):
    """A member of a consumer group; every record that it sees counts, and every error."""

    def __init__(self, bootstrap: str, seen: set[int], failures: list[str]) -> None:
        super().__init__(failures)
        self._seen = seen
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "application",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1000,  # otherwise they wait 5 minutes
            }
        )
        self._consumer.subscribe([TOPIC])

    def turn(self, number: int) -> None:
        message = self._consumer.poll(0.1)
        if message is None:
            return
        error = message.error()
        if error is not None:
            raise KafkaException(error)
        self._seen.add(int(message.value() or b""))

    def end(self) -> None:
        super().end()
        self._consumer.close()


class Administrator(Work):
    """Creates a topic in each turn, with one client that lives as long as the application."""

    def __init__(self, bootstrap: str, failures: list[str]) -> None:
        super().__init__(failures)
        self.created = 0
        self._client = AdminClient({"bootstrap.servers": bootstrap})

    def turn(self, number: int) -> None:
        name = f"made-{number}"
        try:
            self._client.create_topics([NewTopic(name, 1, 3)])[name].result(SECONDS_MAX)
        except KafkaException as error:
            # The broker died with the request: librdkafka never retries one that changes something.
            if error.args[0].code() != KafkaError._TRANSPORT:
                raise
            return
        self.created += 1
        time.sleep(LOOK_EVERY_S)


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_EVERY_S)


@pytest.mark.requirement("Q-6")
@pytest.mark.complains("problem kind=leaderless: no leader for *")
@pytest.mark.chaos
def test_an_application_notices_neither_failures_nor_growth() -> None:
    with Cluster(3) as cluster:
        create(cluster.bootstrap, PARTITIONS)
        seen: set[int] = set()
        failures: list[str] = []
        load = Load(cluster.bootstrap, PARTITIONS)
        members = [Member(cluster.bootstrap, seen, failures) for _ in range(2)]
        administrator = Administrator(cluster.bootstrap, failures)
        workers: list[Work] = [*members, administrator]
        for worker in workers:
            worker.start()
        until(lambda: bool(seen) and administrator.created > 0, "nothing moves at the start")

        with Admin(cluster.bootstrap) as admin:

            def goes_on() -> None:
                """Wait until new records arrive and new topics are created."""
                records, topics = len(seen), administrator.created
                until(
                    lambda: len(seen) > records + PARTITIONS and administrator.created > topics,
                    f"the application stands still: {failures}",
                )

            killed = cluster.leader(TOPIC)
            cluster.kill(killed)
            goes_on()
            cluster.restart(killed)
            goes_on()
            controller = admin.cluster().controller
            cluster.kill(controller)
            goes_on()
            cluster.restart(controller)
            added = cluster.add()
            leaving = next(node for node in cluster.nodes if node not in (added, controller))
            stays = tuple(node for node in cluster.nodes if node not in (added, leaving))
            goals = {(TOPIC, index): (added, *stays) for index in range(PARTITIONS)}
            admin.brokers.move(goals)
            until(lambda: not admin.brokers.moves(), "the moves do not end")
            goes_on()
            grown = AdminClient({"bootstrap.servers": cluster.bootstrap})
            more = grown.create_partitions([NewPartitions(TOPIC, MORE_PARTITIONS)])
            more[TOPIC].result(SECONDS_MAX)
            cluster.stop(leaving)
            goes_on()

        load.end()
        sent = {number for numbers in load.acknowledged.values() for number in numbers}
        until(lambda: sent <= seen, "the group does not get all that was acknowledged")
        for worker in workers:
            worker.end()
        assert failures == []
        assert load.failures == []
