"""Share groups of an unmodified client: every record to one member, acknowledged singly."""

# mypy: disable-error-code="no-untyped-call"

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing.process import BrokerProcess

pytestmark = pytest.mark.compat

SECONDS_MAX = 20
TOPIC = "orders"
GROUP = "workers"


def admin_of(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def make_topic(broker: BrokerProcess, partitions: int = 1) -> None:
    admin = admin_of(broker)
    for made in admin.create_topics([NewTopic(TOPIC, partitions, 1)]).values():
        made.result(SECONDS_MAX)


def set_group(broker: BrokerProcess, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), text, incremental_operation=AlterConfigOpType.SET)
        for name, text in settings.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=entries)
    admin = admin_of(broker)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(SECONDS_MAX)


def produce(broker: BrokerProcess, first: int, count: int, partitions: int = 1) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(TOPIC, str(number), partition=number % partitions)
    assert producer.flush(SECONDS_MAX) == 0


@contextmanager
def member(broker: BrokerProcess, *, is_explicit: bool = False) -> Iterator[ShareConsumer]:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "share.acknowledgement.mode": "explicit" if is_explicit else "implicit",
        }
    )
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def number_of(message: Message) -> int:
    value = message.value()
    assert value is not None
    return int(value)


def taken(
    consumer: ShareConsumer, count: int, settle: Callable[[Message], None] | None = None
) -> list[int]:
    """Poll until this many records have come."""
    values: list[int] = []
    late = time.monotonic() + SECONDS_MAX
    while len(values) < count and time.monotonic() < late:
        for message in consumer.poll(0.5):
            assert message.error() is None, message.error()
            values.append(number_of(message))
            if settle is not None:
                settle(message)
    return values


@pytest.mark.requirement("PAT-1")
def test_every_record_is_delivered_once_to_one_of_two_members(broker: BrokerProcess) -> None:
    make_topic(broker, 2)
    set_group(broker, share_auto_offset_reset="earliest")
    produce(broker, 0, 1000, 2)
    seen: Counter[int] = Counter()
    late = time.monotonic() + SECONDS_MAX
    with member(broker) as one, member(broker) as other:
        while len(seen) < 1000 and time.monotonic() < late:
            for consumer in (one, other):
                seen.update(number_of(message) for message in consumer.poll(0.2))
        assert one.commit_sync() is not None
        assert other.commit_sync() is not None
    assert seen == Counter(range(1000))


@pytest.mark.requirement("PAT-1")
def test_a_settled_record_does_not_come_again_and_a_released_one_does(
    broker: BrokerProcess,
) -> None:
    make_topic(broker)
    set_group(broker, share_auto_offset_reset="earliest")
    produce(broker, 0, 4)
    ways = [
        AcknowledgeType.ACCEPT,
        AcknowledgeType.RELEASE,
        AcknowledgeType.REJECT,
        AcknowledgeType.ACCEPT,
    ]
    with member(broker, is_explicit=True) as consumer:

        def settle(message: Message) -> None:
            consumer.acknowledge(message, ways[number_of(message)])

        assert taken(consumer, 4, settle) == [0, 1, 2, 3]
        assert not any(consumer.commit_sync().values())
        counts: list[int | None] = []

        def accept(message: Message) -> None:
            counts.append(message.delivery_count())
            consumer.acknowledge(message)

        assert taken(consumer, 1, accept) == [1]
        assert counts == [2]
        assert not any(consumer.commit_sync().values())
    produce(broker, 4, 1)
    with member(broker) as consumer:
        assert taken(consumer, 1) == [4]


def test_records_of_a_member_that_leaves_go_to_another(broker: BrokerProcess) -> None:
    make_topic(broker)
    set_group(broker, share_auto_offset_reset="earliest")
    produce(broker, 0, 10)
    with member(broker, is_explicit=True) as consumer:
        assert taken(consumer, 10) == list(range(10))
    with member(broker) as consumer:
        assert taken(consumer, 10) == list(range(10))


def test_what_was_settled_survives_a_kill(broker: BrokerProcess) -> None:
    make_topic(broker)
    set_group(broker, share_auto_offset_reset="earliest")
    produce(broker, 0, 100)
    with member(broker, is_explicit=True) as consumer:

        def settle(message: Message) -> None:
            is_odd = number_of(message) % 2 == 1
            kind = AcknowledgeType.ACCEPT if is_odd else AcknowledgeType.RELEASE
            consumer.acknowledge(message, kind)

        assert taken(consumer, 100, settle) == list(range(100))
        assert not any(consumer.commit_sync().values())
    broker.kill()
    broker.start()
    with member(broker) as consumer:
        assert taken(consumer, 50) == list(range(0, 100, 2))


def test_a_plain_consumer_does_not_notice_a_share_group(broker: BrokerProcess) -> None:
    make_topic(broker)
    set_group(broker, share_auto_offset_reset="earliest")
    produce(broker, 0, 50)
    with member(broker) as consumer:
        assert taken(consumer, 50) == list(range(50))
    plain = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
    plain.assign([TopicPartition(TOPIC, 0, 0)])
    found = [message.value() for message in plain.consume(50, SECONDS_MAX)]
    plain.close()
    assert found == [str(number).encode() for number in range(50)]


def test_an_unknown_group_setting_is_refused(broker: BrokerProcess) -> None:
    with pytest.raises(KafkaException, match="unknown group setting"):
        set_group(broker, share_no_such_thing="1")
