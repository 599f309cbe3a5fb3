"""The traffic of the demonstration: one client sends, another reads, and losses are counted.

Everything is counted from what the clients themselves recorded.
"""

# mypy: disable-error-code="no-untyped-call"

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import quantiles
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.errors import KafkaesqueError
from kafkaesque.spark.pipelines.activity_events import KINDS, Event

TOPIC = "clicks"
PARTITIONS = 4
REPLICAS = 3
SECONDS_MAX = 60
RATE = 300
"""Events a second."""
_AT_ONCE = 8
"""Visitors at a time; every second one leaves and another comes."""
_PACE_S = 0.02
_FAR_MS = 3_600_000

Place: TypeAlias = tuple[int, int]
"""Partition and offset."""


class DemoFailed(KafkaesqueError):
    """The demonstration could not be carried out."""


@dataclass(slots=True)
class Sent:
    """What the producer knows: which records are acknowledged, by partition and offset."""

    events: dict[bytes, Event] = field(default_factory=dict)
    """All events that were sent, by the value of the record."""
    acknowledged: dict[Place, bytes] = field(default_factory=dict)
    refused: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    longest_pause_ms: float = 0.0
    """The longest time without any acknowledgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the acknowledged records."""

    acknowledged: int
    lost: int
    twice: int
    reordered: int
    elsewhere: int
    """Records read at another place than was acknowledged."""

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept."""
        bad = self.lost or self.twice or self.reordered or self.elsewhere
        return self.acknowledged > 0 and not bad


def compare(
    sent: Mapping[Place, bytes],
    seen: Sequence[tuple[int, int, bytes]],
    order: Mapping[bytes, int] | None = None,
) -> Verdict:
    """Compare what was acknowledged with what was read: partition, offset, value.

    `order` is the order in which values were sent; without it order is not checked.
    """
    counts = Counter(value for _, _, value in seen)
    places = {value: (partition, offset) for partition, offset, value in seen}
    last: dict[int, int] = {}
    reordered = 0
    for partition, _, value in sorted(seen):
        number = (order or {}).get(value)
        if number is not None:
            reordered += number < last.get(partition, -1)
            last[partition] = number
    return Verdict(
        acknowledged=len(sent),
        lost=sum(value not in counts for value in sent.values()),
        twice=sum(count - 1 for count in counts.values()),
        reordered=reordered,
        elsewhere=sum(value in places and places[value] != place for place, value in sent.items()),
    )


def create_topic(bootstrap: str) -> None:
    """Create the topic with a real admin client."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, REPLICAS)])[TOPIC].result(SECONDS_MAX)


class Clicks:
    """An idempotent confluent-kafka producer on its own thread that records every outcome."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self.sent = Sent()
        self._chance = random.Random(seed)
        self._next = 0
        self._last_heard = 0.0
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafkaesque-demo", daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 5,
                "log_level": 0,  # the demonstration itself reports the lost broker
            }
        )

    def begin(self) -> None:
        """Send one and wait, because a producer needs a moment for its id. Then send steadily."""
        self._send(1)
        self._wait()
        self.sent.latencies_ms.clear()
        self._last_heard = time.perf_counter()
        self._thread.start()

    def end(self) -> None:
        """End the traffic, and wait until all outcomes are known.

        The last event is from far in the future, so that all visits before it are over.
        """
        self._is_ended.set()
        self._thread.join(SECONDS_MAX)
        self._send(1, later_ms=_FAR_MS)
        self._wait()

    def close(self) -> None:
        """Stop at once, whatever the outcomes."""
        self._is_ended.set()

    @property
    def order(self) -> dict[bytes, int]:
        """The order in which values were sent."""
        return {value: number for number, value in enumerate(self.sent.events)}

    def p99_ms(self) -> float:
        """Return the latency within which 99 % were acknowledged."""
        latencies = self.sent.latencies_ms
        return quantiles(latencies, n=100)[-1] if len(latencies) > 1 else 0.0

    def _run(self) -> None:
        began, count = time.monotonic(), 0
        while not self._is_ended.wait(_PACE_S):
            due = int((time.monotonic() - began) * RATE) - count
            self._send(due)
            count += due

    def _send(self, count: int, later_ms: int = 0) -> None:
        for _ in range(count):
            number, self._next = self._next, self._next + 1
            event = Event(
                user=f"visitor-{int(time.monotonic()) + self._chance.randrange(_AT_ONCE)}",
                kind=self._chance.choices(KINDS, (35, 50, 10, 5))[0],
                item=f"item-{number}",
                at_ms=time.time_ns() // 1_000_000 + later_ms,
            )
            value = event.to_json().encode()
            self.sent.events[value] = event
            told = partial(self._note, value, time.perf_counter())
            self._producer.produce(TOPIC, value, key=event.user, on_delivery=told)
        self._producer.poll(0)

    def _wait(self) -> None:
        if self._producer.flush(SECONDS_MAX):
            raise DemoFailed("not every record was acknowledged within a minute")

    def _note(self, value: bytes, begun: float, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.sent.refused += 1
            return
        now = time.perf_counter()
        if self._last_heard:
            pause_ms = (now - self._last_heard) * 1000
            self.sent.longest_pause_ms = max(self.sent.longest_pause_ms, pause_ms)
        self._last_heard = now
        self.sent.acknowledged[partition, offset] = value
        self.sent.latencies_ms.append((now - begun) * 1000)


def read_all(bootstrap: str, count: int) -> tuple[str, list[tuple[int, int, bytes]]]:
    """Read the topic from its start, with another client library if there is one.

    Returns the client's name, and partition, offset and value of each record.
    """
    try:
        import aiokafka  # noqa: F401
    except ImportError:
        return "confluent-kafka", _read_with_confluent(bootstrap, count)
    return "aiokafka", asyncio.run(_read_with_aiokafka(bootstrap, count))


async def _read_with_aiokafka(bootstrap: str, count: int) -> list[tuple[int, int, bytes]]:
    """Read with a group; what is missing in the end counts as lost."""
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id="demo", auto_offset_reset="earliest"
    )
    await consumer.start()
    seen: list[tuple[int, int, bytes]] = []
    end = time.monotonic() + SECONDS_MAX
    try:
        while len(seen) < count and time.monotonic() < end:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                seen += [(r.partition, r.offset, r.value or b"") for r in records]
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
