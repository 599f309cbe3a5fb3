"""Real consumers read from any offset, in pieces of any size, in any compression."""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing.process import BrokerProcess

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    import kafka
    import kafka.codec
    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import TopicPartition as AioTopicPartition

SECONDS_MAX = 60
START_MS = time.time_ns() // 1_000_000 - 3_600_000
"""An hour ago: retention may delete much older records before they are read."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KAFKA_PYTHON_CODECS = [
    codec
    for codec, is_there in {
        "none": True,
        "gzip": kafka.codec.has_gzip(),
        "snappy": kafka.codec.has_snappy(),
        "lz4": kafka.codec.has_lz4(),
        "zstd": kafka.codec.has_zstd(),
    }.items()
    if is_there
]
"""It decompresses what other packages on this machine can decompress."""
PADDING = b"." * 200
"""Makes every batch worth compressing."""
MANY = 50


def create(broker: BrokerProcess, topic: str, partitions: int, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    configs = {name.replace("_", "."): value for name, value in settings.items()}
    made = admin.create_topics([NewTopic(topic, partitions, config=configs)])
    made[topic].result(SECONDS_MAX)


def a_value(number: int) -> bytes:
    return b"%d" % number + PADDING


def fill(broker: BrokerProcess, topic: str, count: int, **settings: object) -> None:
    """Produce records 0, 1, … to partition 0, a second apart, in as few batches as possible."""
    produce_all(broker, topic, {(0, n): a_value(n) for n in range(count)}, settings)


def produce_all(
    broker: BrokerProcess,
    topic: str,
    values: Mapping[tuple[int, int], bytes],
    settings: Mapping[str, object],
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, **settings})
    for (partition, number), value in values.items():
        producer.produce(
            topic,
            value,
            partition=partition,
            timestamp=START_MS + 1000 * number,
            headers=[("number", b"%d" % number), ("empty", b"")],
        )
        producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0


@contextmanager
def a_consumer(broker: BrokerProcess, **settings: object) -> Iterator[Consumer]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            **named,
        }
    )
    yield consumer
    consumer.close()


def read(consumer: Consumer, count: int) -> list[Message]:
    messages: list[Message] = []
    end = time.monotonic() + SECONDS_MAX
    while len(messages) < count and time.monotonic() < end:
        for message in consumer.consume(count - len(messages), 0.2):
            assert message.error() is None, message.error()
            messages.append(message)
    return messages


def an_old_consumer(broker: BrokerProcess, **settings: object) -> kafka.KafkaConsumer:
    return kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        group_id=None,
        consumer_timeout_ms=10_000,
        **settings,
    )


@pytest.mark.requirement("CORE-5")
@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_reads_from_the_middle_of_a_batch(broker: BrokerProcess, codec: str) -> None:
    create(broker, "orders", 1)
    fill(broker, "orders", 100, **{"compression.type": codec})
    with a_consumer(broker) as consumer:
        for offset in (37, 99, 0):
            consumer.assign([TopicPartition("orders", 0, offset)])
            first = read(consumer, 1)[0]
            assert (first.offset(), first.value()) == (offset, a_value(offset))
            assert first.headers() == [("number", b"%d" % offset), ("empty", b"")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("codec", KAFKA_PYTHON_CODECS)
def test_kafka_python_reads_from_the_middle_of_a_batch(broker: BrokerProcess, codec: str) -> None:
    create(broker, "orders", 1)
    fill(broker, "orders", 100, **{"compression.type": codec})
    consumer = an_old_consumer(broker)
    place = kafka.TopicPartition("orders", 0)
    consumer.assign([place])
    for offset in (37, 99, 0):
        consumer.seek(place, offset)
        record = next(consumer)
        assert (record.offset, record.value) == (offset, a_value(offset))
        assert list(record.headers) == [("number", b"%d" % offset), ("empty", b"")]
    consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_aiokafka_reads_from_the_middle_of_a_batch(broker: BrokerProcess, codec: str) -> None:
    create(broker, "orders", 1)
    fill(broker, "orders", 100, **{"compression.type": codec})

    async def go() -> list[tuple[int, bytes | None]]:
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
        await consumer.start()
        place = AioTopicPartition("orders", 0)
        consumer.assign([place])
        found = []
        for offset in (37, 99, 0):
            consumer.seek(place, offset)
            record = await asyncio.wait_for(consumer.getone(), SECONDS_MAX)
            found.append((record.offset, record.value))
        await consumer.stop()
        return found

    assert asyncio.run(go()) == [(offset, a_value(offset)) for offset in (37, 99, 0)]


def test_every_client_finds_the_same_offset_by_time(broker: BrokerProcess) -> None:
    create(broker, "orders", 1)
    fill(broker, "orders", 100)
    wanted_ms = START_MS + 41_500

    async def by_aiokafka() -> int | None:
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
        await consumer.start()
        place = AioTopicPartition("orders", 0)
        found = await consumer.offsets_for_times({place: wanted_ms})
        await consumer.stop()
        return None if found[place] is None else found[place].offset

    with a_consumer(broker) as consumer:
        (found,) = consumer.offsets_for_times([TopicPartition("orders", 0, wanted_ms)], SECONDS_MAX)
    old = an_old_consumer(broker)
    place = kafka.TopicPartition("orders", 0)
    by_kafka_python = old.offsets_for_times({place: wanted_ms})[place].offset
    old.close()
    assert (found.offset, by_kafka_python, asyncio.run(by_aiokafka())) == (42, 42, 42)


def test_librdkafka_reads_many_partitions_in_small_pieces(broker: BrokerProcess) -> None:
    create(broker, "orders", MANY)
    sent = {(p, n): b"%d/%d" % (p, n) for n in range(20) for p in range(MANY)}
    produce_all(broker, "orders", sent, {})
    with a_consumer(broker, fetch_max_bytes=2000, message_max_bytes=1000) as consumer:
        consumer.assign([TopicPartition("orders", p, 0) for p in range(MANY)])
        found = {(m.partition(), m.offset()): m.value() for m in read(consumer, len(sent))}
    assert found == sent


@pytest.mark.filterwarnings("ignore")
def test_kafka_python_reads_many_partitions_with_a_fetch_session(broker: BrokerProcess) -> None:
    create(broker, "orders", MANY)
    sent = {(p, n): b"%d/%d" % (p, n) for n in range(20) for p in range(MANY)}
    produce_all(broker, "orders", sent, {})
    consumer = an_old_consumer(
        broker, fetch_max_bytes=2000, max_partition_fetch_bytes=500, auto_offset_reset="earliest"
    )
    consumer.assign([kafka.TopicPartition("orders", p) for p in range(MANY)])
    found = {(r.partition, r.offset): r.value for r in islice(consumer, len(sent))}
    late = {(p, n): b"late %d" % p for p in (3, 7) for n in (20,)}
    produce_all(broker, "orders", late, {})
    found |= {(r.partition, r.offset): r.value for r in islice(consumer, len(late))}
    consumer.close()
    assert found == sent | late


def test_aiokafka_reads_many_partitions_in_small_pieces(broker: BrokerProcess) -> None:
    create(broker, "orders", MANY)
    sent = {(p, n): b"%d/%d" % (p, n) for n in range(20) for p in range(MANY)}
    produce_all(broker, "orders", sent, {})

    async def go() -> dict[tuple[int, int], bytes | None]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap,
            fetch_max_bytes=2000,
            max_partition_fetch_bytes=500,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        consumer.assign([AioTopicPartition("orders", p) for p in range(MANY)])
        found: dict[tuple[int, int], bytes | None] = {}
        async with asyncio.timeout(SECONDS_MAX):
            while len(found) < len(sent):
                record = await consumer.getone()
                found[record.partition, record.offset] = record.value
        await consumer.stop()
        return found

    assert asyncio.run(go()) == sent


def test_large_messages_are_read_whatever_the_fetch_size(broker: BrokerProcess) -> None:
    create(broker, "orders", 1, max_message_bytes="8000000")
    values = {(0, number): bytes([number]) * 3_000_000 for number in range(4)}
    produce_all(broker, "orders", values, {"message.max.bytes": 8_000_000})
    wanted = list(values.values())
    with a_consumer(broker, fetch_message_max_bytes=1000) as consumer:
        consumer.assign([TopicPartition("orders", 0, 0)])
        assert [message.value() for message in read(consumer, 4)] == wanted
    old = an_old_consumer(broker, max_partition_fetch_bytes=1000, auto_offset_reset="earliest")
    old.assign([kafka.TopicPartition("orders", 0)])
    assert [record.value for record in islice(old, len(wanted))] == wanted
    old.close()
