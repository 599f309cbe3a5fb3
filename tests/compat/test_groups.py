"""Consumer groups of unmodified clients: rebalances, instances, restarts, administration."""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing.process import BrokerProcess

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    from aiokafka import AIOKafkaConsumer
    from kafka import KafkaAdminClient, KafkaConsumer

SECONDS_MAX = 60
PARTITIONS = 4
TOPIC = "orders"
GROUP = "readers"


def make_topic(broker: BrokerProcess, name: str = TOPIC) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
        made.result(SECONDS_MAX)


def produce(broker: BrokerProcess, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(TOPIC, str(number), key=str(number))
    assert producer.flush(SECONDS_MAX) == 0


@contextmanager
def consumers(
    broker: BrokerProcess, count: int, revoked: list[object] | None = None, **settings: object
) -> Iterator[list[Consumer]]:
    """Consumers of the group that commit only when the test says so; closed at the end.

    Partitions revoked from them in rebalances are added to `revoked`.
    """
    taken = [] if revoked is None else revoked
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(
                Consumer(
                    {
                        "bootstrap.servers": broker.bootstrap,
                        "group.id": GROUP,
                        "auto.offset.reset": "earliest",
                        "enable.auto.commit": False,
                        "session.timeout.ms": 6000,
                        "heartbeat.interval.ms": 100,
                        **{name.replace("_", "."): value for name, value in settings.items()},
                    }
                )
            )
            stack.callback(made[-1].close)
            made[-1].subscribe([TOPIC], on_revoke=lambda _, parts: taken.extend(parts))
        yield made


def poll_until(
    group: list[Consumer], done: Callable[[], bool], seen: list[str] | None = None
) -> None:
    """Poll in turn until a condition holds; records are added to `seen`."""
    end = time.monotonic() + SECONDS_MAX
    while not done():
        assert time.monotonic() < end, [c.assignment() for c in group]
        for consumer in group:
            for message in consumer.consume(100, 0.02):
                assert message.error() is None, message.error()
                value = message.value()
                if seen is not None and value is not None:
                    seen.append(value.decode())


def shares(group: list[Consumer]) -> list[list[int]]:
    return [sorted(where.partition for where in c.assignment()) for c in group]


def is_shared(group: list[Consumer]) -> bool:
    """Whether every partition has one reader, and every reader one partition at least."""
    found = shares(group)
    return all(found) and sorted(chain(*found)) == list(range(PARTITIONS))


@pytest.mark.requirement("CORE-6")
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_come_and_go_during_production_and_every_record_is_read(
    broker: BrokerProcess, strategy: str
) -> None:
    make_topic(broker)
    count = 2_000
    producing = threading.Thread(target=produce, args=(broker, 0, count))
    seen: list[str] = []
    with consumers(broker, 1, partition_assignment_strategy=strategy) as first:
        poll_until(first, lambda: is_shared(first))
        producing.start()
        with consumers(broker, 2, partition_assignment_strategy=strategy) as more:
            poll_until(first + more, lambda: is_shared(first + more), seen)
            for consumer in first + more:
                consumer.commit(offsets=consumer.position(consumer.assignment()))
        producing.join(SECONDS_MAX)
        poll_until(first, lambda: is_shared(first), seen)
        poll_until(first, lambda: len(set(seen)) == count, seen)
    assert sorted(set(seen), key=int) == [str(number) for number in range(count)]


def test_an_instance_that_restarts_gets_its_partitions_back_without_a_rebalance(
    broker: BrokerProcess,
) -> None:
    make_topic(broker)
    revoked: list[object] = []
    with consumers(broker, 1, revoked, group_instance_id="one") as first:
        with consumers(broker, 1, group_instance_id="two") as second:
            poll_until(first + second, lambda: is_shared(first + second))
            before = shares(first + second)
        revoked.clear()
        with consumers(broker, 1, group_instance_id="two") as again:
            poll_until(first + again, lambda: is_shared(first + again))
            assert shares(first + again) == before
            assert revoked == []


def test_a_group_continues_after_the_broker_was_killed(broker: BrokerProcess) -> None:
    make_topic(broker)
    produce(broker, 0, 200)
    seen: list[str] = []
    with consumers(broker, 1) as group:
        poll_until(group, lambda: len(seen) == 200, seen)
        group[0].commit(asynchronous=False)
        broker.kill()
        broker.start()
        produce(broker, 200, 100)
        poll_until(group, lambda: len(seen) >= 300, seen)
        assert len(seen) == 300, "it was a member all the time, and reads nothing twice"
        group[0].commit(asynchronous=False)
    broker.kill()
    broker.start()
    with consumers(broker, 1) as later:
        poll_until(later, lambda: is_shared(later), seen)
        produce(broker, 300, 1)
        poll_until(later, lambda: len(seen) > 300, seen)
    assert seen[300:] == ["300"]


def test_groups_are_listed_described_and_deleted_by_librdkafka(broker: BrokerProcess) -> None:
    make_topic(broker)
    produce(broker, 0, 10)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with consumers(broker, 1, client_id="reader") as group:
        seen: list[str] = []
        poll_until(group, lambda: len(seen) == 10, seen)
        group[0].commit(asynchronous=False)
        listed = admin.list_consumer_groups().result(SECONDS_MAX)
        assert [(g.group_id, g.state) for g in listed.valid] == [(GROUP, ConsumerGroupState.STABLE)]
        shown = admin.describe_consumer_groups([GROUP])[GROUP].result(SECONDS_MAX)
        assert (shown.state, shown.members[0].client_id) == (ConsumerGroupState.STABLE, "reader")
        assert len(shown.members[0].assignment.topic_partitions) == PARTITIONS
    offsets = group_offsets(admin)
    assert sum(offsets.values()) == 10
    for gone in admin.delete_consumer_groups([GROUP]).values():
        gone.result(SECONDS_MAX)
    assert admin.list_consumer_groups().result(SECONDS_MAX).valid == []


def group_offsets(admin: AdminClient) -> dict[int, int]:
    wanted = [ConsumerGroupTopicPartitions(GROUP)]
    found = admin.list_consumer_group_offsets(wanted)[GROUP].result(SECONDS_MAX)
    return {where.partition: where.offset for where in found.topic_partitions}


def test_an_assigned_consumer_commits_and_continues(broker: BrokerProcess) -> None:
    make_topic(broker)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "alone"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    where = TopicPartition(TOPIC, 2, 17, metadata="half way")
    consumer.assign([where])
    consumer.commit(offsets=[where], asynchronous=False)
    (found,) = consumer.committed([TopicPartition(TOPIC, 2)], SECONDS_MAX)
    assert (found.offset, found.metadata) == (17, "half way")
    consumer.close()


def test_aiokafka_shares_a_topic_and_commits(broker: BrokerProcess) -> None:
    make_topic(broker)
    produce(broker, 0, 100)

    def make() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=broker.bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=100,
            metadata_max_age_ms=1000,
        )

    async def go() -> int:
        async with make() as first, make() as second:
            group = [first, second]
            async with asyncio.timeout(SECONDS_MAX):
                while not all(len(c.assignment()) == PARTITIONS // 2 for c in group):
                    await asyncio.gather(*(c.getmany(timeout_ms=50, max_records=1) for c in group))
                for consumer in group:
                    await consumer.seek_to_beginning()
                count = 0
                while count < 100:
                    for consumer in group:
                        found = await consumer.getmany(timeout_ms=50)
                        count += sum(len(some) for some in found.values())
                for consumer in group:
                    await consumer.commit()
            return count

    assert asyncio.run(go()) == 100
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert sum(group_offsets(admin).values()) == 100


@pytest.mark.filterwarnings("ignore")
def test_kafka_python_shares_a_topic_and_manages_groups(broker: BrokerProcess) -> None:
    make_topic(broker)
    produce(broker, 0, 100)
    counts, sizes = [0, 0], [0, 0]
    end = time.monotonic() + SECONDS_MAX
    both = threading.Barrier(2)

    def read(number: int) -> None:
        consumer = KafkaConsumer(
            TOPIC,
            bootstrap_servers=broker.bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=30_000,
            heartbeat_interval_ms=100,
        )
        while sizes != [2, 2] and time.monotonic() < end:
            consumer.poll(timeout_ms=50)  # the first one may have all partitions for a while
            sizes[number] = len(consumer.assignment())
        both.wait(SECONDS_MAX)
        consumer.seek_to_beginning()
        while sum(counts) < 100 and time.monotonic() < end:
            for found in consumer.poll(timeout_ms=50).values():
                counts[number] += len(found)
        consumer.commit()
        consumer.close()

    readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert (sum(counts), sizes) == (100, [2, 2])
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    assert GROUP in str(admin.list_groups())
    assert "Empty" in str(admin.describe_groups([GROUP]))
    admin.delete_groups([GROUP])
    assert GROUP not in str(admin.list_groups())
    admin.close()
