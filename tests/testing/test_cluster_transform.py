"""Consume, transform, produce: exactly once with aiokafka, whichever broker is killed."""

# mypy: disable-error-code="no-untyped-call, attr-defined"

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.broker.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.broker.transactions import STATE_TOPIC
from kafkaesque.config import GroupConfig, TransactionConfig
from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # their own, about things of theirs
    import kafka
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.errors import KafkaError as AioError
    from aiokafka.structs import TopicPartition as AioPartition
    from kafka.structs import TopicPartition as KafkaPartition

SECONDS_MAX = 60
TIMEOUT_MS = 10_000
COUNT = 40
BATCH = 5
GROUP = "transformers"
NAME = "transformer"
Harms = dict[int, Callable[[], None]]

pytestmark = [pytest.mark.chaos, pytest.mark.long]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for made in admin.create_topics([NewTopic(n, 1, 3) for n in ("in", "out")]).values():
            made.result(SECONDS_MAX)
        plain = Producer({"bootstrap.servers": running.bootstrap, "log_level": 0})
        for number in range(COUNT):
            plain.produce("in", str(number), partition=0)
        assert plain.flush(SECONDS_MAX) == 0
        yield running


class Killer:
    """Kills who leads a partition, and lets the one before come back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.killed: list[NodeId] = []

    def harms(self) -> Harms:
        """Return what is done within which transaction."""
        of_id = partition_of(NAME, TransactionConfig().state_partitions)
        of_group = partition_of(GROUP, GroupConfig().offsets_partitions)
        return {
            2: lambda: self._kill(STATE_TOPIC, of_id),
            4: lambda: self._kill("out", 0),
            6: lambda: self._kill(OFFSETS_TOPIC, of_group),
        }

    def _kill(self, topic: str, partition: int) -> None:
        self.relieve()
        self.killed.append(self._cluster.leader(topic, partition))
        self._cluster.kill(self.killed[-1])

    def relieve(self) -> None:
        """Let the one that was killed last come back."""
        if self.killed:
            self._cluster.restart(self.killed[-1])


async def transform_with_aiokafka(cluster: Cluster, harms: Harms) -> None:
    """Transform everything, a few messages in each transaction."""
    place = AioPartition("in", 0)
    end = time.monotonic() + 2 * SECONDS_MAX
    number = 0
    producer: Any = None
    while time.monotonic() < end:
        number += 1
        consumer = AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=GROUP,
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        try:
            async with asyncio.timeout(SECONDS_MAX / 2):
                if producer is None:
                    producer = AIOKafkaProducer(
                        bootstrap_servers=cluster.bootstrap,
                        transactional_id=NAME,
                        transaction_timeout_ms=TIMEOUT_MS,
                    )
                    await producer.start()
                await consumer.start()
                consumer.assign([place])
                done = await consumer.committed(place) or 0
                if done >= COUNT:
                    await producer.stop()
                    return
                consumer.seek(place, done)
                found = await consumer.getmany(place, timeout_ms=5_000, max_records=BATCH)
                messages = found.get(place, [])
                await producer.begin_transaction()
                for message in messages:
                    await producer.send_and_wait("out", (message.value or b"") + b"!", partition=0)
                if number in harms:
                    await asyncio.to_thread(harms[number])
                reached = {place: done + len(messages)}
                await producer.send_offsets_to_transaction(reached, GROUP)
                await producer.commit_transaction()
        except (AioError, TimeoutError):
            with suppress(AioError, TimeoutError):
                await asyncio.wait_for(producer.stop(), 5)
            producer = None  # the next one aborts what it left
        finally:
            await consumer.stop()
    pytest.fail("it does not come to an end")


def seen(cluster: Cluster) -> list[bytes]:
    """Read all that is committed of `out`."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=cluster.bootstrap.split(","), isolation_level="read_committed"
    )
    place = KafkaPartition("out", 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    found: list[bytes] = []
    end = time.monotonic() + SECONDS_MAX
    while len(found) < COUNT and time.monotonic() < end:
        found += [m.value for m in consumer.poll(500).get(place, [])]
    found += [m.value for m in consumer.poll(2_000).get(place, [])]
    consumer.close()
    return found


def test_b27_b28_aiokafka_transforms_exactly_once_whoever_is_killed(cluster: Cluster) -> None:
    killer = Killer(cluster)
    asyncio.run(transform_with_aiokafka(cluster, killer.harms()))
    assert len(killer.killed) == 3
    killer.relieve()
    assert seen(cluster) == [b"%d!" % number for number in range(COUNT)]
