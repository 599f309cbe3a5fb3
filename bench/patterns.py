"""What do the messaging patterns cost compared with the bare client below them?

Each figure is a ratio within one run, against confluent-kafka doing the minimum equivalent: a
request's round trip against one hop from a producer to a waiting consumer; a worker with a no-op
handler against a loop that polls, calls the same no-op and stores offsets; a redrive against a loop
that copies. They take turns, and the best of each counts; of round trips, which take less than a
millisecond, the median ratio of neighbours. Prints JSON lines.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Callable

import uvloop
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.serving import Served, serving
from kafkaesque.patterns import (
    AskerSettings,
    Delivery,
    RetryPlan,
    WorkerSettings,
    reply,
    request,
    worker,
)
from kafkaesque.patterns.dead_letter import dead_headers, failure_of
from kafkaesque.patterns.dead_letter_redrive import Redriver, RedriveSettings
from kafkaesque.patterns.message import Message
from kafkaesque.testing.process import HOST

ROUNDS = 7
HOPS = 400
WARM_UP = 50
MESSAGES = 60_000
LETTERS = 40_000
SECONDS_MAX = 60
OS = {"flush.policy": "os"}
OS_REPLIES = AskerSettings(reply_settings=OS)


def main() -> None:
    """Measure and print."""
    hop, trip = [], []
    bare, worked = [], []
    copied, redriven = [], []
    with serving() as broker:
        at = f"{HOST}:{broker.port}"
        for number in range(ROUNDS):
            hop.append(time_hops(broker, at, f"hops-{number}"))
            trip.append(uvloop.run(time_requests(broker, at, f"requests-{number}")))
            topic = f"work-{number}"
            fill(broker, at, topic, MESSAGES)
            bare.append(MESSAGES / uvloop.run(time_bare_loop(at, topic)))
            worked.append(MESSAGES / uvloop.run(time_worker(at, topic)))
            dead = f"dead-{number}.dlq"
            fill(broker, at, dead, LETTERS, letter_headers(dead))
            broker.create_topic(f"origin-{dead}", OS)
            broker.create_topic(f"copies-{number}", OS)
            copied.append(LETTERS / time_copy(at, dead, f"copies-{number}"))
            redriven.append(LETTERS / timed(lambda name=dead: redrive(at, name)))  # type: ignore[misc]
    pairs = [(one / other, one, other) for one, other in zip(trip, hop, strict=True)]
    ratio, one, other = statistics.median_low(pairs)
    show("request-round-trip", ratio, "hops", None, trip_us=one * 1e6, hop_us=other * 1e6)
    show("worker-throughput", max(worked), "msg/s", max(worked) / max(bare), bare=max(bare))
    show("redrive-speed", max(redriven), "msg/s", max(redriven) / max(copied), copy=max(copied))


def show(figure: str, measured: float, unit: str, ratio: float | None, **beside: float) -> None:
    """Print one figure."""
    line = {"figure": figure, "measured": round(measured, 2), "unit": unit}
    more = {name: round(value) for name, value in beside.items()}
    rounded = None if ratio is None else round(ratio, 3)
    print(json.dumps({**line, "ratio": rounded, **more}), flush=True)


def timed(what: Callable[[], object]) -> float:
    """Return the duration in seconds."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def fill(
    broker: Served,
    at: str,
    topic: str,
    count: int,
    headers: list[tuple[str, str | bytes | None]] | None = None,
) -> None:
    """Create a topic of one partition with this many messages of 100 bytes."""
    broker.create_topic(topic, OS)
    many = {"queue.buffering.max.messages": 2 * count}
    producer = Producer({"bootstrap.servers": at, "linger.ms": 5, **many})
    for number in range(count):
        producer.produce(topic, bytes(100), b"%d" % (number % 1_000), headers=headers or [])
    assert producer.flush(SECONDS_MAX) == 0


def time_hops(broker: Served, at: str, topic: str) -> float:
    """Return the median from producing a message until a waiting consumer has it."""
    broker.create_topic(topic, OS)
    producer = Producer({"bootstrap.servers": at, "linger.ms": 0, "acks": "all"})
    consumer = Consumer({"bootstrap.servers": at, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    took = []
    for _ in range(HOPS):
        began = time.perf_counter()
        producer.produce(topic, bytes(100))
        assert consumer.poll(SECONDS_MAX) is not None
        took.append(time.perf_counter() - began)
        producer.flush(SECONDS_MAX)
    consumer.close()
    return statistics.median(took[WARM_UP:])


async def time_requests(broker: Served, at: str, topic: str) -> float:
    """Return the median of a request's round trip, one at a time."""
    broker.create_topic(topic, OS)

    async def answer(_: Delivery) -> bytes:
        return bytes(100)

    took = []
    async with reply(at, topic, answer), request(at, settings=OS_REPLIES) as ask:
        for _ in range(HOPS):
            began = time.perf_counter()
            await ask(topic, bytes(100))
            took.append(time.perf_counter() - began)
    return statistics.median(took[WARM_UP:])


async def nothing(_: object) -> None:
    """Handle a message by doing nothing."""


def group_settings(at: str, group: str) -> dict[str, str | bool | int]:
    """Return the settings of a consumer that commits its stored offsets."""
    return {
        "bootstrap.servers": at,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": False,
        "auto.commit.interval.ms": 500,
    }


async def time_bare_loop(at: str, topic: str) -> float:
    """Return how long a loop over poll takes for all messages, from the first one."""
    consumer = Consumer(group_settings(at, f"bare-{topic}"))
    consumer.subscribe([topic])
    left, began = MESSAGES, 0.0
    while left:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None and message.error() is None
        began = began or time.perf_counter()
        await nothing(message)
        consumer.store_offsets(message)
        left -= 1
    took = time.perf_counter() - began
    consumer.close()
    return took


async def time_worker(at: str, topic: str) -> float:
    """Return how long a worker takes for all messages, from the first one."""
    done, began, finished = 0, 0.0, asyncio.Event()

    async def handle(_: Delivery) -> None:
        nonlocal done, began
        began = began or time.perf_counter()
        done += 1
        if done == MESSAGES:
            finished.set()

    settings = WorkerSettings(retries=RetryPlan(delays_ms=()))
    async with worker(at, topic, handle, group=f"worker-{topic}", settings=settings):
        await asyncio.wait_for(finished.wait(), SECONDS_MAX)
        return time.perf_counter() - began


def letter_headers(topic: str) -> list[tuple[str, str | bytes | None]]:
    """Return the headers of a dead letter."""
    message = Message(
        topic=f"origin-{topic}", partition=0, offset=0, timestamp_ms=1, key=b"", value=b""
    )
    failure = failure_of(ValueError("no"))
    return list(dead_headers(message, failure, attempts=3, group="g", now_ms=1))


def time_copy(at: str, source: str, target: str) -> float:
    """Return how long a loop takes to copy a topic, including headers."""

    def copy() -> None:
        consumer = Consumer({"bootstrap.servers": at, "group.id": "unused"})
        producer = Producer({"bootstrap.servers": at, "linger.ms": 5, "acks": "all"})
        consumer.assign([TopicPartition(source, 0, 0)])
        left = LETTERS
        while left:
            for message in consumer.consume(min(left, 1_000), SECONDS_MAX):
                value, key, headers = message.value(), message.key(), message.headers()
                producer.produce(target, value, key, headers=headers)
                producer.poll(0)
                left -= 1
        assert producer.flush(SECONDS_MAX) == 0
        consumer.close()

    return timed(copy)


def redrive(at: str, topic: str) -> None:
    """Send all letters back."""
    assert Redriver(at, topic, RedriveSettings()).run().moved == LETTERS


if __name__ == "__main__":
    main()
