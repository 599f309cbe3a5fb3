"""Text and Kafka clients on one broker: the same partitions for the same keys, the same records."""

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.gateway.text_clients import text_broker

pytestmark = pytest.mark.compat

SECONDS_MAX = 60
KEYS = [f"key-{number}" for number in range(30)]
PARTITIONS = 5


def produce(bootstrap: str) -> None:
    """Produce every key with the partitioner of Kafka's Java client, as in librdkafka."""
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for key in KEYS:
        producer.produce("t", "from kafka", key=key, headers=[("Header", "h"), ("other", b"\xff")])
    assert producer.flush(SECONDS_MAX) == 0


def consume(bootstrap: str, count: int) -> list[Message]:
    """Return this many records of all partitions."""
    settings = {"group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition("t", partition, 0) for partition in range(PARTITIONS)])
    messages = consumer.consume(count, SECONDS_MAX)
    consumer.close()
    return messages


@pytest.mark.requirement("CORE-4")
def test_a_key_goes_to_the_same_partition_whichever_client_publishes_it(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await client.ask(f"CRTP t {PARTITIONS}")
            await asyncio.to_thread(produce, f"127.0.0.1:{broker.node.port}")
            for key in KEYS:
                assert await client.ask(f'PUBS t {{"Key":"{key}","Body":"typed"}}') == "Done"
            ids = await client.data(f"SUBS t g {PARTITIONS}")
            places = [await client.data(f"CONS t {one} 0") for one in ids]
            assert sum(len(place) for place in places) == 2 * len(KEYS)
            for place in places:
                sent, typed = (
                    {record["Key"] for record in place if record["Body"] == body}
                    for body in ("from kafka", "typed")
                )
                assert sent == typed
            shown = next(r for place in places for r in place if r["Body"] == "from kafka")
            assert shown["Header"] == "h"
            assert shown["Headers"] == [["other", {"Base64": "/w=="}]]

    asyncio.run(go())


def test_a_typed_message_is_a_plain_record_to_a_kafka_client(tmp_path: Path) -> None:
    async def go() -> Message:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await client.ask(f"CRTP t {PARTITIONS}")
            await client.ask('PUBS t {"Key":"k","Header":"h","Body":{"n": 1}}')
            found = await asyncio.to_thread(consume, f"127.0.0.1:{broker.node.port}", 1)
            return found[0]

    message = asyncio.run(go())
    assert (message.key(), message.value()) == (b"k", b'{"n":1}')
    assert message.headers() == [("Header", b"h")]
    assert message.timestamp()[1] > 0
