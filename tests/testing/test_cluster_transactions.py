"""Transactions over a cluster of real processes: exactly once, whichever broker is killed."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.broker.coordination.transactions import STATE_TOPIC
from kafkaesque.coordinator_config import GroupConfig, TransactionConfig
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS
from tests.testing.killing import Killer

SECONDS_MAX = 30
PARTITIONS = 3
COUNT = 90
BATCH = 10
GROUP = "transformers"
NAME = "transformer"

pytestmark = [pytest.mark.chaos, pytest.mark.long]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        made = admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in ("in", "out")])
        for future in made.values():
            future.result(SECONDS_MAX)
        yield running


class Transformer:
    """Reads from `in`, writes to `out`, and commits both or neither."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._producer = self._come()

    def run(self, killer: Killer) -> None:
        """Transform everything while brokers are killed within transactions."""
        number = 0
        end = time.monotonic() + 6 * SECONDS_MAX
        while time.monotonic() < end:
            number += 1
            killer.relieve(number)
            if not self._transact(partial(killer.strike, number)):
                return
        pytest.fail("it does not come to an end")

    def _come(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "transactional.id": NAME,
                "transaction.timeout.ms": 10_000,
                "socket.timeout.ms": 3_000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        producer.init_transactions(SECONDS_MAX)
        return producer

    def _transact(self, harm: Callable[[], object]) -> bool:
        """Run one transaction, or abort it; return whether there was something to do."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "socket.timeout.ms": 3_000,
                "log_level": 0,
            }
        )
        try:
            places = [TopicPartition("in", index) for index in range(PARTITIONS)]
            try:
                committed = consumer.committed(places, SECONDS_MAX)
            except KafkaException:
                return True
            done = sum(max(place.offset, 0) for place in committed)
            if done >= COUNT:
                return False
            consumer.assign(
                [TopicPartition("in", p.partition, max(p.offset, 0)) for p in committed]
            )
            self._produce(consumer, min(BATCH, COUNT - done), harm)
        finally:
            consumer.close()
        return True

    def _produce(self, consumer: Consumer, count: int, harm: Callable[[], object]) -> None:
        messages = [one for one in consumer.consume(count, 5) if one.error() is None]
        producer = self._producer
        try:
            producer.begin_transaction()
            for place, message in enumerate(messages):
                value = message.value()
                assert isinstance(value, bytes)
                producer.produce("out", value + b"!", partition=place % PARTITIONS)
            producer.flush(SECONDS_MAX)
            harm()
            positions = [p for p in consumer.position(consumer.assignment()) if p.offset >= 0]
            metadata = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(positions, metadata, SECONDS_MAX)
            producer.commit_transaction(SECONDS_MAX)
        except KafkaException as problem:
            self._give_up(problem)

    def _give_up(self, problem: KafkaException) -> None:
        """Abort, or restart, which aborts too, or finds what was decided and waits for it."""
        try:
            if problem.args[0].txn_requires_abort():
                self._producer.abort_transaction(SECONDS_MAX)
                return
        except KafkaException:
            pass
        self._producer = self._come()


def seen(cluster: Cluster) -> list[bytes]:
    """Read all that is committed of `out`, to its end; in sorted order."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "eyes",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("out", index, 0) for index in range(PARTITIONS)])
    found: list[bytes] = []
    ended: set[int | None] = set()
    end = time.monotonic() + SECONDS_MAX
    while len(ended) < PARTITIONS and time.monotonic() < end:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            ended.add(message.partition())
        else:
            found.append(message.value() or b"")
    consumer.close()
    return sorted(found)


@WITHOUT_LEADERS
@pytest.mark.requirement("LOG-4")
def test_b27_b28_consume_transform_produce_is_exactly_once_whichever_broker_is_killed(
    cluster: Cluster,
) -> None:
    plain = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(COUNT):
        plain.produce("in", str(number), partition=number % PARTITIONS)
    assert plain.flush(SECONDS_MAX) == 0
    of_transactions = partition_of(NAME, TransactionConfig().state_partitions)
    of_groups = partition_of(GROUP, GroupConfig().offsets_partitions)
    plan = {2: (STATE_TOPIC, of_transactions), 4: ("out", 0), 6: (OFFSETS_TOPIC, of_groups)}
    killer = Killer(cluster, plan)
    Transformer(cluster).run(killer)
    assert killer.is_done
    killer.relieve_all()
    end = time.monotonic() + SECONDS_MAX
    wanted = sorted(b"%d!" % number for number in range(COUNT))
    while (found := seen(cluster)) != wanted:
        assert len(found) < COUNT, "something was written twice"
        assert time.monotonic() < end, "something was lost, or is never decided"
