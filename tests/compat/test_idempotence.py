"""Third-party idempotent producers: each message once and in order, whatever is killed."""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing.process import BrokerProcess
from tests.compat.test_librdkafka import consume

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    import kafka
    from aiokafka import AIOKafkaProducer

SECONDS_MAX = 60
KILLS = 3
TOPIC = "once"


@contextmanager
def killed_repeatedly(broker: BrokerProcess) -> Iterator[threading.Event]:
    """Kill the broker a few times while the block runs; the event says when that is over."""
    over = threading.Event()

    def kill() -> None:
        for _ in range(KILLS):
            over.wait(0.4)
            broker.kill()
            broker.start()
        over.set()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield over
    finally:
        killer.join()


def a_topic(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(SECONDS_MAX)


def check(broker: BrokerProcess, sent: list[str], offsets: list[int] | None = None) -> None:
    """Read the topic; every message is there once, in order, at the acknowledged offset."""
    found = consume(broker, TopicPartition(TOPIC, 0, 0), len(sent))
    assert [message.value() for message in found] == [value.encode() for value in sent]
    if offsets is not None:
        assert [message.offset() for message in found] == offsets
    assert consume_more(broker, len(sent)) == []


def consume_more(broker: BrokerProcess, end: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    high = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), SECONDS_MAX)[1]
    consumer.close()
    return [] if high == end else consume(broker, TopicPartition(TOPIC, 0, end), high - end)


def close_refused_sockets() -> None:
    """Close the sockets that kafka-python leaves open when it connects while there is no broker."""
    for thing in gc.get_objects():
        # By its type: to ask a weak proxy for its class can fail.
        if issubclass(type(thing), socket.socket) and thing.family is socket.AF_INET:
            thing.close()


@pytest.mark.requirement("LOG-4")
def test_librdkafka_sends_each_message_once_through_kills(broker: BrokerProcess) -> None:
    a_topic(broker)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 20,
            "retry.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
        }
    )
    offsets: list[int] = []
    failures: list[KafkaError] = []
    sent: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            offset = message.offset()
            assert offset is not None
            offsets.append(offset)

    with killed_repeatedly(broker) as over:
        end = time.monotonic() + SECONDS_MAX
        while not over.is_set() and time.monotonic() < end:
            sent.append(f"message {len(sent)}")
            producer.produce(TOPIC, sent[-1], on_delivery=delivered)
            producer.poll(0.001)
    assert producer.flush(SECONDS_MAX) == 0
    assert failures == []
    assert len(sent) > 100
    check(broker, sent, offsets)


def test_kafka_python_sends_each_message_once_through_kills(broker: BrokerProcess) -> None:
    a_topic(broker)
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        enable_idempotence=True,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=100,
    )
    sent: list[str] = []
    futures = []
    with killed_repeatedly(broker) as over:
        while not over.wait(0.001):
            sent.append(f"message {len(sent)}")
            futures.append(producer.send(TOPIC, sent[-1].encode(), partition=0))
    offsets = [future.get(SECONDS_MAX).offset for future in futures]
    producer.close()
    close_refused_sockets()
    assert len(sent) > 100
    check(broker, sent, offsets)


def test_aiokafka_sends_each_message_once_through_kills(broker: BrokerProcess) -> None:
    a_topic(broker)
    sent: list[str] = []

    async def go() -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, enable_idempotence=True, retry_backoff_ms=20
        )
        await producer.start()
        futures = []
        with killed_repeatedly(broker) as over:
            while not over.is_set():
                sent.append(f"message {len(sent)}")
                futures.append(await producer.send(TOPIC, sent[-1].encode(), partition=0))
                await asyncio.sleep(0.001)
        metadata = await asyncio.wait_for(asyncio.gather(*futures), SECONDS_MAX)
        await producer.stop()
        return [one.offset for one in metadata]

    offsets = asyncio.run(go())
    assert len(sent) > 100
    check(broker, sent, offsets)
