"""Batches of a query, as third-party readers see them: whole once decided, otherwise not at all."""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import time
import warnings
from collections.abc import Callable

import pytest

from kafkaesque.client.admin import Admin
from kafkaesque.client.prepared import PreparedTransaction
from kafkaesque.record.view import Codec
from kafkaesque.testing.process import BrokerProcess
from kafkaesque.transactional_ids import BatchTransactionId
from tests.client.batches import encoded
from tests.compat.test_idempotence import close_refused_sockets
from tests.compat.test_transactions import seen

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    import kafka
    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import TopicPartition as AioPartition
    from kafka.structs import TopicPartition as KafkaPartition

SECONDS_MAX = 30.0
POLL_MS = 100
QUERY, SINK, TOPIC = "q", "s", "out"


def by_librdkafka(broker: BrokerProcess) -> list[str]:
    return seen(broker, TOPIC)


def by_aiokafka(broker: BrokerProcess) -> list[str]:
    async def read() -> list[str]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap, isolation_level="read_committed"
        )
        await consumer.start()
        try:
            places = [AioPartition(TOPIC, index) for index in (0, 1)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            ends = await consumer.end_offsets(places)
            found: list[str] = []
            async with asyncio.timeout(SECONDS_MAX):
                while any([await consumer.position(one) < ends[one] for one in places]):
                    rows = await consumer.getmany(timeout_ms=POLL_MS)
                    found += [(one.value or b"").decode() for some in rows.values() for one in some]
            return sorted(found)
        finally:
            await consumer.stop()

    return asyncio.run(read())


def by_kafka_python(broker: BrokerProcess) -> list[str]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap, isolation_level="read_committed"
    )
    try:
        places = [KafkaPartition(TOPIC, index) for index in (0, 1)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        found: list[str] = []
        deadline = time.monotonic() + SECONDS_MAX
        while any(consumer.position(one) < ends[one] for one in places):
            assert time.monotonic() < deadline, f"it stays at {found}"
            rows = consumer.poll(POLL_MS)
            found += [one.value.decode() for some in rows.values() for one in some]
        return sorted(found)
    finally:
        consumer.close()


def task(admin: Admin, batch: int, driver: int, number: int) -> PreparedTransaction:
    name = str(BatchTransactionId(QUERY, SINK, batch, driver, number, 0))
    producer = admin.transactional_producer(name, Codec.LZ4, timeout_ms=60_000)
    value = f"{batch}.{number}".encode()
    producer.send({(TOPIC, 0): encoded(value), (TOPIC, 1): encoded(value)})
    return producer.prepare("the driver")


@pytest.mark.parametrize("read", [by_librdkafka, by_aiokafka, by_kafka_python])
def test_readers_see_only_decided_batches(
    broker: BrokerProcess, read: Callable[[BrokerProcess], list[str]]
) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(TOPIC, partitions=2)
        driver = admin.batches.register(QUERY, SINK)
        chosen = [task(admin, 0, driver, number) for number in range(3)]
        task(admin, 0, driver, 9)
        assert read(broker) == []
        admin.batches.decide(QUERY, SINK, 0, driver, chosen)
        first = sorted(2 * ["0.0", "0.1", "0.2"])
        assert read(broker) == first, "on return all of it can be read"
        left = task(admin, 1, driver, 0)
        assert read(broker) == first
        admin.batches.register(QUERY, SINK)
        deadline = time.monotonic() + SECONDS_MAX
        while admin.transactions.list():
            assert time.monotonic() < deadline, f"{left} stays open"
        assert read(broker) == first
    close_refused_sockets()


def test_a_prepared_transaction_survives_a_killed_broker(broker: BrokerProcess) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(TOPIC, partitions=2)
        driver = admin.batches.register(QUERY, SINK)
        chosen = [task(admin, 0, driver, number) for number in range(2)]
        broker.kill()
        broker.start()
        admin.batches.decide(QUERY, SINK, 0, driver, chosen)
        broker.kill()
        broker.start()
        decided = admin.batches.decision(QUERY, SINK, 0)
        assert decided is not None
        assert decided.transactional_ids == tuple(one.transactional_id for one in chosen)
    assert by_librdkafka(broker) == ["0.0", "0.0", "0.1", "0.1"]
