"""Third-party transactional producers: atomic, whatever is aborted, fenced or killed."""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import time
import warnings
from collections.abc import Sequence

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing.process import BrokerProcess
from tests.compat.test_idempotence import close_refused_sockets

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    import kafka
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.structs import TopicPartition as AioPartition
    from kafka.structs import OffsetAndMetadata
    from kafka.structs import TopicPartition as KafkaPartition

SECONDS_MAX = 30
COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"


def topics(broker: BrokerProcess, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(name, 2) for name in names]).values():
        future.result(SECONDS_MAX)


def producer(broker: BrokerProcess, name: str, **settings: object) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": name,
            "log_level": 0,
            "retry.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            # When its only broker goes, librdkafka bootstraps again, and from then on it waits
            # forever for the group coordinator's former broker entry.
            "metadata.recovery.strategy": "none",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    made.init_transactions(SECONDS_MAX)
    return made


def seen(broker: BrokerProcess, topic: str, isolation: str = COMMITTED) -> list[str]:
    """Read both partitions of a topic to the end at this isolation level; in sorted order."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "eyes",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in (0, 1)])
    found: list[str] = []
    ended: set[int | None] = set()
    end = time.monotonic() + SECONDS_MAX
    while len(ended) < 2 and time.monotonic() < end:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            ended.add(message.partition())
        else:
            found.append(text(message))
    consumer.close()
    assert len(ended) == 2
    return sorted(found)


def text(message: Message) -> str:
    value = message.value()
    assert isinstance(value, bytes)
    return value.decode()


def seen_soon(broker: BrokerProcess, topic: str, wanted: Sequence[str]) -> None:
    """Expect exactly this, at once or a moment later: markers are written after the answer."""
    end = time.monotonic() + SECONDS_MAX
    while (found := seen(broker, topic)) != sorted(wanted):
        assert time.monotonic() < end, f"{found} instead of {wanted}"


def write(writer: Producer, topic: str, *values: str) -> None:
    """Write to both partitions, and wait until the broker has it."""
    for place, value in enumerate(values):
        writer.produce(topic, value, partition=place % 2)
    assert writer.flush(SECONDS_MAX) == 0


@pytest.mark.requirement("LOG-4")
def test_b25_b31_librdkafka_sees_committed_transactions_and_no_aborted_ones(
    broker: BrokerProcess,
) -> None:
    topics(broker, "orders")
    writer = producer(broker, "t")
    for number in range(4):
        writer.begin_transaction()
        write(writer, "orders", f"{number}a", f"{number}b", f"{number}c")
        if number % 2:
            writer.abort_transaction(SECONDS_MAX)
        else:
            writer.commit_transaction(SECONDS_MAX)
    committed = [f"{number}{letter}" for number in (0, 2) for letter in "abc"]
    everything = [f"{number}{letter}" for number in range(4) for letter in "abc"]
    seen_soon(broker, "orders", committed)
    assert seen(broker, "orders", UNCOMMITTED) == everything
    broker.stop()
    broker.start()
    assert seen(broker, "orders") == committed
    assert seen(broker, "orders", UNCOMMITTED) == everything


def test_open_transactions_and_what_follows_them_are_not_visible(broker: BrokerProcess) -> None:
    topics(broker, "orders")
    writer, other = producer(broker, "t"), producer(broker, "other")
    writer.begin_transaction()
    write(writer, "orders", "open")
    other.begin_transaction()
    write(other, "orders", "behind")
    other.commit_transaction(SECONDS_MAX)
    assert seen(broker, "orders") == []
    assert seen(broker, "orders", UNCOMMITTED) == ["behind", "open"]
    writer.commit_transaction(SECONDS_MAX)
    seen_soon(broker, "orders", ["behind", "open"])


def test_a_zombie_is_fenced_and_its_transaction_aborted(broker: BrokerProcess) -> None:
    topics(broker, "orders")
    zombie = producer(broker, "t")
    zombie.begin_transaction()
    write(zombie, "orders", "of the zombie")
    heir = producer(broker, "t")
    with pytest.raises(KafkaException, match=r"[Ff]enced|epoch"):
        zombie.commit_transaction(SECONDS_MAX)
    heir.begin_transaction()
    write(heir, "orders", "of the heir")
    heir.commit_transaction(SECONDS_MAX)
    seen_soon(broker, "orders", ["of the heir"])


@pytest.mark.requirement("LOG-4")
def test_b27_an_open_transaction_is_aborted_by_its_timeout(
    broker: BrokerProcess,
) -> None:
    topics(broker, "orders")
    lost = producer(broker, "lost", transaction_timeout_ms=1500)
    lost.begin_transaction()
    write(lost, "orders", "lost")
    other = producer(broker, "other")
    other.begin_transaction()
    write(other, "orders", "kept")
    other.commit_transaction(SECONDS_MAX)
    seen_soon(broker, "orders", ["kept"])


@pytest.mark.parametrize("commits", [True, False])
def test_b27_b28_a_transaction_survives_the_kill_of_its_broker_whole(
    broker: BrokerProcess, *, commits: bool
) -> None:
    topics(broker, "orders")
    writer = producer(broker, "t")
    writer.begin_transaction()
    write(writer, "orders", "before", "the kill")
    broker.kill()
    broker.start()
    write(writer, "orders", "and", "after")
    if commits:
        writer.commit_transaction(SECONDS_MAX)
    else:
        writer.abort_transaction(SECONDS_MAX)
    broker.kill()
    broker.start()
    seen_soon(broker, "orders", ["before", "the kill", "and", "after"] if commits else [])
    writer.begin_transaction()
    write(writer, "orders", "next")
    writer.commit_transaction(SECONDS_MAX)


@pytest.mark.requirement("LOG-4")
def test_consume_transform_produce_with_librdkafka_survives_aborts_and_a_kill(
    broker: BrokerProcess,
) -> None:
    topics(broker, "in", "out")
    plain = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(60):
        plain.produce("in", str(number), partition=number % 2)
    assert plain.flush(SECONDS_MAX) == 0
    writer = producer(broker, "ctp")
    rounds = 0
    end = time.monotonic() + 2 * SECONDS_MAX
    while len(seen(broker, "out")) < 60 and time.monotonic() < end:
        rounds += 1
        consumer = reader(broker)
        batch = poll(consumer, 17)
        writer.begin_transaction()
        for message in batch:
            writer.produce("out", f"{text(message)}!", partition=message.partition() or 0)
        assert writer.flush(SECONDS_MAX) == 0
        if rounds == 2:
            broker.kill()
            broker.start()
        positions = consumer.position(consumer.assignment())
        writer.send_offsets_to_transaction(
            [p for p in positions if p.offset >= 0], consumer.consumer_group_metadata(), SECONDS_MAX
        )
        if rounds == 3:
            writer.abort_transaction(SECONDS_MAX)  # and the consumed records are consumed again
        else:
            writer.commit_transaction(SECONDS_MAX)
        consumer.close()
    assert seen(broker, "out") == sorted(f"{number}!" for number in range(60))


def reader(broker: BrokerProcess) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "transformers",
            "isolation.level": COMMITTED,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["in"])
    return consumer


def poll(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    end = time.monotonic() + 5
    while len(found) < count and time.monotonic() < end:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message)
    return found


def test_aiokafka_commits_aborts_and_moves_a_group_with_its_transaction(
    broker: BrokerProcess,
) -> None:
    topics(broker, "in", "out")

    async def go() -> int | None:
        writer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="aio")
        await writer.start()
        for number in range(4):
            await writer.begin_transaction()
            for index in (0, 1):
                await writer.send_and_wait("out", b"%d-%d" % (number, index), partition=index)
            await writer.send_offsets_to_transaction({AioPartition("in", 0): number}, "movers")
            if number % 2:
                await writer.abort_transaction()
            else:
                await writer.commit_transaction()
        await writer.stop()
        eyes = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="movers")
        await eyes.start()
        committed: int | None = await eyes.committed(AioPartition("in", 0))
        await eyes.stop()
        return committed

    assert asyncio.run(asyncio.wait_for(go(), SECONDS_MAX)) == 2
    seen_soon(broker, "out", ["0-0", "0-1", "2-0", "2-1"])
    assert len(seen(broker, "out", UNCOMMITTED)) == 8


def test_kafka_python_commits_aborts_and_moves_a_group_with_its_transaction(
    broker: BrokerProcess,
) -> None:
    topics(broker, "in", "out")
    writer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="kp")
    writer.init_transactions()
    for number in range(4):
        writer.begin_transaction()
        for index in (0, 1):
            writer.send("out", b"%d-%d" % (number, index), partition=index).get(SECONDS_MAX)
        offsets = {KafkaPartition("in", 0): OffsetAndMetadata(number, "", -1)}
        writer.send_offsets_to_transaction(offsets, "movers")
        if number % 2:
            writer.abort_transaction()
        else:
            writer.commit_transaction()
    writer.close()
    eyes = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="movers")
    assert eyes.committed(KafkaPartition("in", 0)) == 2
    eyes.close()
    close_refused_sockets()
    seen_soon(broker, "out", ["0-0", "0-1", "2-0", "2-1"])
    assert len(seen(broker, "out", UNCOMMITTED)) == 8
