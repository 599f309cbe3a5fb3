"""confluent-kafka, and with it librdkafka, produces to our broker and consumes from it."""

import time
from collections.abc import Sequence

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.clock import SystemClock
from kafkaesque.testing.process import BrokerProcess

pytestmark = pytest.mark.compat

SECONDS_MAX = 60
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def a_consumer(broker: BrokerProcess) -> Consumer:
    """A consumer with an explicit assignment; it belongs to no group and commits nothing."""
    settings = {"group.id": "unused", "enable.auto.commit": False}
    return Consumer({"bootstrap.servers": broker.bootstrap, **settings})


def produce(broker: BrokerProcess, topic: str, values: Sequence[str], codec: str = "none") -> None:
    """Produce with acks=all; fails unless every record is acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec})
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        headers: list[tuple[str, str | bytes | None]] = [("codec", codec), ("nothing", None)]
        producer.produce(topic, value, key="k", headers=headers, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0
    assert failures == []


def consume(broker: BrokerProcess, where: TopicPartition, count: int) -> list[Message]:
    """Read `count` records of one partition."""
    consumer = a_consumer(broker)
    consumer.assign([where])
    messages: list[Message] = []
    end = time.monotonic() + SECONDS_MAX
    while len(messages) < count and time.monotonic() < end:
        for message in consumer.consume(count - len(messages), 0.2):
            assert message.error() is None, message.error()
            messages.append(message)
    consumer.close()
    return messages


def values_of(broker: BrokerProcess, topic: str, partitions: int, count: int) -> list[str]:
    """Read a whole topic, partition by partition."""
    found: list[str] = []
    consumer = a_consumer(broker)
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, p), SECONDS_MAX)[1]
        for p in range(partitions)
    ]
    consumer.close()
    assert sum(ends) == count
    for partition, end in enumerate(ends):
        for message in consume(broker, TopicPartition(topic, partition, 0), end):
            value = message.value()
            assert isinstance(value, bytes)
            headers = message.headers()
            assert isinstance(headers, list)
            assert [header[0] for header in headers] == ["codec", "nothing"]
            found.append(value.decode())
    return found


@pytest.mark.requirement("CORE-1")
@pytest.mark.requirement("CORE-7")
@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_back_as_they_were_sent(broker: BrokerProcess, codec: str) -> None:
    sent = [f"value {number}" for number in range(500)]
    produce(broker, "orders", sent, codec)
    assert values_of(broker, "orders", 4, len(sent)) == sent


@pytest.mark.requirement("CORE-2")
@pytest.mark.requirement("CORE-3")
def test_offsets_are_dense_from_zero(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("one", 1)])["one"].result(SECONDS_MAX)
    produce(broker, "one", [str(number) for number in range(200)])
    messages = consume(broker, TopicPartition("one", 0, 0), 200)
    assert [message.offset() for message in messages] == list(range(200))
    assert [message.value() for message in messages] == [str(n).encode() for n in range(200)]


@pytest.mark.requirement("LOG-4")
def test_acknowledged_records_survive_a_kill(broker: BrokerProcess) -> None:
    sent = [f"value {number}" for number in range(1_000)]
    produce(broker, "orders", sent)
    broker.kill()
    broker.start()
    assert values_of(broker, "orders", 4, len(sent)) == sent


def test_a_clean_stop_loses_nothing_and_exits_with_zero(broker: BrokerProcess) -> None:
    produce(broker, "orders", ["a", "b"])
    assert broker.stop() == 0
    broker.start()
    assert values_of(broker, "orders", 4, 2) == ["a", "b"]


@pytest.mark.requirement("CORE-5")
def test_reading_can_start_at_a_timestamp(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("timed", 1)])["timed"].result(SECONDS_MAX)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    start_ms = SystemClock().now_ms() - 3_600_000  # much older records would be deleted
    for number in range(50):
        producer.produce("timed", str(number), timestamp=start_ms + number * 1000)
    assert producer.flush(SECONDS_MAX) == 0
    consumer = a_consumer(broker)
    asked = [TopicPartition("timed", 0, start_ms + 20_500)]
    (found,) = consumer.offsets_for_times(asked, SECONDS_MAX)
    consumer.close()
    assert found.offset == 21


def test_a_waiting_consumer_gets_new_records(broker: BrokerProcess) -> None:
    produce(broker, "orders", ["early"])
    consumer = a_consumer(broker)
    consumer.assign([TopicPartition("orders", p, 0) for p in range(4)])
    seen = consumer.consume(1, SECONDS_MAX)
    produce(broker, "orders", ["late"])
    seen += consumer.consume(1, SECONDS_MAX)
    consumer.close()
    assert [message.value() for message in seen] == [b"early", b"late"]


def test_an_existing_topic_cannot_be_created_again(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("twice", 1)])["twice"].result(SECONDS_MAX)
    with pytest.raises(Exception, match="already exists"):
        admin.create_topics([NewTopic("twice", 1)])["twice"].result(SECONDS_MAX)
