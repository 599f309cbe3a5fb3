"""The traffic of the demonstration: one client sends, another reads, and what was lost is counted.

Everything is counted from what the clients themselves recorded.
"""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.errors import KafkaesqueError

TOPIC = "clicks"
PARTITIONS = 4
SECONDS_MAX = 60
_PAGES = ("home", "search", "cart", "paid")

Place: TypeAlias = tuple[int, int]
"""Partition and offset."""


class DemoFailed(KafkaesqueError):
    """The demonstration could not be carried out."""


@dataclass(slots=True)
class Sent:
    """What the producer was told: which records are safe, by partition and offset."""

    acknowledged: dict[Place, bytes] = field(default_factory=dict)
    refused: int = 0
    latencies_ms: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the records that were acknowledged."""

    acknowledged: int
    lost: int
    twice: int
    elsewhere: int
    """Records that were read at another place than the producer was told."""

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept."""
        return self.acknowledged > 0 and not (self.lost or self.twice or self.elsewhere)


def compare(sent: Mapping[Place, bytes], seen: Sequence[tuple[int, int, bytes]]) -> Verdict:
    """Compare what was acknowledged with what was read: partition, offset, value."""
    counts = Counter(value for _, _, value in seen)
    places = {value: (partition, offset) for partition, offset, value in seen}
    return Verdict(
        acknowledged=len(sent),
        lost=sum(value not in counts for value in sent.values()),
        twice=sum(count - 1 for count in counts.values()),
        elsewhere=sum(value in places and places[value] != place for place, value in sent.items()),
    )


def create_topic(bootstrap: str) -> None:
    """Create the topic with a real admin client."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(SECONDS_MAX)


class Clicks:
    """An idempotent confluent-kafka producer that sends numbered clicks and notes their fate."""

    def __init__(self, bootstrap: str) -> None:
        self.sent = Sent()
        self._next = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,  # that the broker is gone for a moment is told by the story
            }
        )

    def begin(self) -> None:
        """Send one and wait: a producer needs a moment to get its id, which is not the traffic."""
        self.send(1)
        self.wait()
        self.sent.latencies_ms.clear()

    def send(self, count: int) -> None:
        """Hand over so many more; they are sent in the background."""
        for _ in range(count):
            number, self._next = self._next, self._next + 1
            value = f"{number} {_PAGES[number % len(_PAGES)]}".encode()
            told = partial(self._note, value, time.perf_counter())
            key = f"user-{number % 100}"
            self._producer.produce(TOPIC, value, key=key, on_delivery=told)
            self._producer.poll(0)

    def wait(self) -> None:
        """Wait until all fates are known."""
        if self._producer.flush(SECONDS_MAX):
            raise DemoFailed("not every record was acknowledged within a minute")

    def _note(self, value: bytes, begun: float, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.sent.refused += 1
            return
        self.sent.acknowledged[partition, offset] = value
        self.sent.latencies_ms.append((time.perf_counter() - begun) * 1000)


def read_all(bootstrap: str, count: int) -> tuple[str, list[tuple[int, int, bytes]]]:
    """Read the topic from its start with a client of another make, if there is one.

    Returns the client's name, and partition, offset and value of each record.
    """
    try:
        import aiokafka  # noqa: F401
    except ImportError:
        return "confluent-kafka", _read_with_confluent(bootstrap, count)
    return "aiokafka", asyncio.run(_read_with_aiokafka(bootstrap, count))


async def _read_with_aiokafka(bootstrap: str, count: int) -> list[tuple[int, int, bytes]]:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id="demo", auto_offset_reset="earliest"
    )
    await consumer.start()
    seen: list[tuple[int, int, bytes]] = []
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while len(seen) < count:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    seen += [(r.partition, r.offset, r.value or b"") for r in records]
    except TimeoutError:
        pass  # what is missing is counted as lost
    finally:
        await consumer.stop()
    return seen


def _read_with_confluent(bootstrap: str, count: int) -> list[tuple[int, int, bytes]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo"})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    seen: list[tuple[int, int, bytes]] = []
    end = time.monotonic() + SECONDS_MAX
    while len(seen) < count and time.monotonic() < end:
        for message in consumer.consume(1000, 0.2):
            partition, offset, value = message.partition(), message.offset(), message.value()
            if message.error() is None and partition is not None and offset is not None:
                seen.append((partition, offset, bytes(value or b"")))
    consumer.close()
    return seen
