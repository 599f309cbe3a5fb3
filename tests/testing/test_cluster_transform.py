"""Consume, transform, produce: exactly once with clients in Python, whichever broker is killed."""

# mypy: disable-error-code="no-untyped-call, attr-defined"

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.broker.coordination.transactions import STATE_TOPIC
from kafkaesque.coordinator_config import GroupConfig, TransactionConfig
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS
from tests.testing.killing import Killer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    import kafka
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.errors import KafkaError as AioError
    from aiokafka.structs import TopicPartition as AioPartition
    from kafka.errors import KafkaError as KafkaPythonError
    from kafka.structs import OffsetAndMetadata
    from kafka.structs import TopicPartition as KafkaPartition

SECONDS_MAX = 60
TIMEOUT_MS = 10_000
COUNT = 40
BATCH = 5
GROUP = "transformers"
NAME = "transformer"
GIVE_UP_S = 6.0
"""A call of kafka-python without a timeout of its own is abandoned after this time."""
T = TypeVar("T")

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.long,
    WITHOUT_LEADERS,
    # Both clients leave sockets open when a broker is killed, or their close is given up.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


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
    gc.collect()  # the sockets that clients left open, while the warning of them is ignored


def a_killer(cluster: Cluster) -> Killer:
    """Kills the leaders of the transactional id, of the output and of the group, in turn."""
    of_id = partition_of(NAME, TransactionConfig().state_partitions)
    of_group = partition_of(GROUP, GroupConfig().offsets_partitions)
    plan = {2: (STATE_TOPIC, of_id), 4: ("out", 0), 6: (OFFSETS_TOPIC, of_group)}
    return Killer(cluster, plan)


async def transform_with_aiokafka(cluster: Cluster, killer: Killer) -> None:
    """Transform everything, a few messages in each transaction."""
    place = AioPartition("in", 0)
    end = time.monotonic() + 2 * SECONDS_MAX
    number = 0
    producer: Any = None
    while time.monotonic() < end:
        number += 1
        await asyncio.to_thread(killer.relieve, number)
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
                await asyncio.to_thread(killer.strike, number)
                reached = {place: done + len(messages)}
                await producer.send_offsets_to_transaction(reached, GROUP)
                await producer.commit_transaction()
        except (AioError, TimeoutError):
            if not killer.killed:
                raise  # nothing is wrong yet
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


def in_time(action: Callable[[], T], seconds: float = GIVE_UP_S) -> T:
    """Run a call that may never return; raises TimeoutError then, and abandons it.

    kafka-python's producer loses the request that it was about to send when it cannot connect to
    the coordinator that it knows (`_maybe_send_pending_request` of kafka/producer/sender.py: after
    an exception it looks up the coordinator and drops the request that needed one), and its
    caller waits without a limit.
    """
    found: list[T | KafkaPythonError] = []

    def act() -> None:
        try:
            found.append(action())
        except KafkaPythonError as problem:
            found.append(problem)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(seconds)
    if not found:
        raise TimeoutError
    if isinstance(found[0], KafkaPythonError):
        raise found[0]
    return found[0]


class KafkaPythonTransformer:
    """Transforms with kafka-python; restarts under its id when something takes too long."""

    def __init__(self, cluster: Cluster, killer: Killer) -> None:
        self._servers = cluster.bootstrap.split(",")
        self._killer = killer
        self._producer: Any = None

    def run(self) -> None:
        """Transform everything, a few messages in each transaction."""
        end = time.monotonic() + 2 * SECONDS_MAX
        number = 0
        while time.monotonic() < end:
            number += 1
            self._killer.relieve(number)
            consumer = kafka.KafkaConsumer(
                bootstrap_servers=self._servers,
                group_id=GROUP,
                enable_auto_commit=False,
                isolation_level="read_committed",
            )
            try:
                if not self._transact(consumer, number):
                    return
            except (KafkaPythonError, TimeoutError):
                self._leave()
                if not self._killer.killed:
                    raise  # nothing is wrong yet
            finally:
                consumer.close(autocommit=False, timeout_ms=1_000)
        pytest.fail("it does not come to an end")

    def _transact(self, consumer: Any, number: int) -> bool:
        if self._producer is None:
            self._producer = kafka.KafkaProducer(
                bootstrap_servers=self._servers,
                transactional_id=NAME,
                transaction_timeout_ms=TIMEOUT_MS,
            )
            in_time(self._producer.init_transactions, SECONDS_MAX / 2)
        producer, place = self._producer, KafkaPartition("in", 0)
        consumer.assign([place])
        done = in_time(lambda: consumer.committed(place), SECONDS_MAX / 2) or 0
        if done >= COUNT:
            self._leave()
            return False
        consumer.seek(place, done)
        messages = consumer.poll(5_000, max_records=BATCH).get(place, [])
        producer.begin_transaction()
        for message in messages:
            producer.send("out", message.value + b"!", partition=0).get(SECONDS_MAX / 2)
        self._killer.strike(number)
        reached = {place: OffsetAndMetadata(done + len(messages), "", -1)}
        in_time(lambda: producer.send_offsets_to_transaction(reached, GROUP))
        in_time(producer.commit_transaction)
        return True

    def _leave(self) -> None:
        """Abandon the producer; the next one aborts what it left, or finds what was decided."""
        producer, self._producer = self._producer, None
        with suppress(KafkaPythonError):
            producer.close(timeout=0)


def test_b27_b28_kafka_python_transforms_exactly_once_whichever_broker_is_killed(
    cluster: Cluster,
) -> None:
    killer = a_killer(cluster)
    KafkaPythonTransformer(cluster, killer).run()
    assert killer.is_done
    killer.relieve_all()
    assert seen(cluster) == [b"%d!" % number for number in range(COUNT)]


@pytest.mark.complains(
    # The outcome of batches that a replaced producer gave up, which is never checked.
    "Future exception was never retrieved*ProducerFenced(*"
)
def test_b27_b28_aiokafka_transforms_exactly_once_whichever_broker_is_killed(
    cluster: Cluster,
) -> None:
    killer = a_killer(cluster)
    asyncio.run(transform_with_aiokafka(cluster, killer))
    assert killer.is_done
    killer.relieve_all()
    assert seen(cluster) == [b"%d!" % number for number in range(COUNT)]
