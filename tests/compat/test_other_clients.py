"""aiokafka, kafka-python and kcat work with the same topics."""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import shutil
import subprocess
import warnings

import pytest

from tests.compat.broker_process import BrokerProcess

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # their own, about things of theirs
    import kafka
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

KCAT = shutil.which("kcat")


def test_aiokafka_produces_and_consumes(broker: BrokerProcess) -> None:
    async def go() -> list[bytes | None]:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks="all")
        await producer.start()
        for number in range(100):
            await producer.send_and_wait("letters", str(number).encode(), partition=0)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "letters", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        )
        await consumer.start()
        values = [(await consumer.getone()).value for _ in range(100)]
        await consumer.stop()
        return values

    assert asyncio.run(go()) == [str(number).encode() for number in range(100)]


@pytest.mark.filterwarnings("ignore")
def test_kafka_python_produces_and_consumes(broker: BrokerProcess) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap, acks="all", enable_idempotence=False
    )
    for number in range(100):
        producer.send("letters", str(number).encode(), partition=0)
    producer.flush(20)
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap, consumer_timeout_ms=10_000, group_id=None
    )
    consumer.assign([kafka.TopicPartition("letters", 0)])
    consumer.seek_to_beginning()
    values = [next(consumer).value for _ in range(100)]
    consumer.close()
    assert values == [str(number).encode() for number in range(100)]


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed")
def test_kcat_produces_and_consumes(broker: BrokerProcess) -> None:
    assert KCAT is not None
    command = [KCAT, "-b", broker.bootstrap, "-t", "letters"]
    subprocess.run([*command, "-P", "-p", "0"], input="one\ntwo\n", text=True, check=True)
    read = subprocess.run(
        [*command, "-C", "-p", "0", "-o", "beginning", "-e", "-q"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert read.stdout == "one\ntwo\n"
