"""Transactions are not served yet: every client gives up at once and says why."""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import time
import warnings

import pytest
from confluent_kafka import KafkaException, Producer

from tests.compat.broker_process import BrokerProcess

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # their own, about things of theirs
    import kafka
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError as AiokafkaError
    from kafka.errors import KafkaError as KafkaPythonError

SECONDS_MAX = 10


def test_librdkafka_gives_up_at_once(broker: BrokerProcess) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "log_level": 0}
    )
    began = time.monotonic()
    with pytest.raises(KafkaException, match=r"[Tt]ransactional"):
        producer.init_transactions(SECONDS_MAX)
    assert time.monotonic() - began < SECONDS_MAX / 2


def test_aiokafka_gives_up_at_once(broker: BrokerProcess) -> None:
    async def go() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t")
        with pytest.raises(AiokafkaError, match=r"[Tt]ransactional"):
            await asyncio.wait_for(producer.start(), SECONDS_MAX)
        await producer.stop()

    asyncio.run(go())


def test_kafka_python_gives_up_at_once(broker: BrokerProcess) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t")
    began = time.monotonic()
    with pytest.raises(KafkaPythonError, match=r"[Tt]ransactional"):
        producer.init_transactions()
    assert time.monotonic() - began < SECONDS_MAX
    producer.close(timeout=1)
