"""What do a million small messages cost the broker when librdkafka sends and reads them?

100 bytes each, acks=all, flush.policy=os, one partition; batches of up to 1 MB, librdkafka's
default, and of 16 KB. The client is the limit, so its speed says little: what counts is the
broker's processor time per million messages. They take turns; the best of several rounds counts.
Prebuilt requests over a bare socket, which cost the client next to nothing, are also reported: they
show the broker's limit.
"""

import json
import time
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.serving import Served, a_batch, fetch_frame, produce_frame, receive, serving

MESSAGES = 1_000_000
VALUE_BYTES = 100
ROUNDS = 5
BATCH_BYTES = {"1m": 1_000_000, "16k": 16_384}
RECORDS_PER_BATCH = {"1m": 9_200, "16k": 150}
IN_FLIGHT = 5
SECONDS_MAX = 120
SETTINGS = {"flush.policy": "os"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a million messages."""

    cpu_seconds: float
    seconds: float


def main() -> None:
    """Measure and print."""
    found: dict[str, list[Cost]] = {}
    with serving() as broker:
        for number in range(ROUNDS):
            for name, size in BATCH_BYTES.items():
                topic = f"{name}-{number}"
                broker.create_topic(topic, SETTINGS)
                found.setdefault(f"produce-{name}", []).append(produce(broker, topic, size))
                found.setdefault(f"consume-{name}", []).append(consume(broker, topic))
                broker.create_topic(f"raw-{topic}", SETTINGS)
                records = RECORDS_PER_BATCH[name]
                raw = produce_raw(broker, f"raw-{topic}", records)
                found.setdefault(f"raw-produce-{name}", []).append(raw)
                raw = consume_raw(broker, f"raw-{topic}")
                found.setdefault(f"raw-consume-{name}", []).append(raw)
    for figure, costs in found.items():
        best = min(costs, key=lambda cost: cost.cpu_seconds)
        fastest = min(cost.seconds for cost in costs)
        line = {
            "raw" if figure.startswith("raw") else "figure": figure,
            "measured": round(best.cpu_seconds, 3),
            "unit": "broker CPU-s per million",
            "ratio": None,
            "million_messages_per_s": round(1 / fastest, 2),
        }
        print(json.dumps(line), flush=True)


def measured(broker: Served, cpu_before: float, start: float, messages: int) -> Cost:
    """Return the cost, scaled to a million messages."""
    share = messages / 1_000_000
    seconds = time.perf_counter() - start
    return Cost(cpu_seconds=(broker.cpu_seconds() - cpu_before) / share, seconds=seconds / share)


def produce(broker: Served, topic: str, batch_bytes: int) -> Cost:
    """Send with librdkafka."""
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "acks": "all",
            "linger.ms": 5,
            "batch.size": batch_bytes,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.messages": 2_000_000,
        }
    )
    producer.list_topics(topic, SECONDS_MAX)
    value = bytes(VALUE_BYTES)
    cpu_before, start = broker.cpu_seconds(), time.perf_counter()
    for _ in range(MESSAGES):
        producer.produce(topic, value)
    assert producer.flush(SECONDS_MAX) == 0
    return measured(broker, cpu_before, start, MESSAGES)


def consume(broker: Served, topic: str) -> Cost:
    """Read everything with librdkafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "unused",
            "enable.auto.commit": False,
        }
    )
    consumer.list_topics(topic, SECONDS_MAX)
    cpu_before, start = broker.cpu_seconds(), time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, 0)])
    left = MESSAGES
    while left:
        messages = consumer.consume(min(left, 10_000), SECONDS_MAX)
        assert messages, "everything comes in time"
        left -= len(messages)
    cost = measured(broker, cpu_before, start, MESSAGES)
    consumer.close()
    return cost


def produce_raw(broker: Served, topic: str, records: int) -> Cost:
    """Send prebuilt requests, a few of them in flight."""
    frame = produce_frame(topic, a_batch(records, VALUE_BYTES))
    requests = MESSAGES // records
    with broker.connect() as connection:
        cpu_before, start = broker.cpu_seconds(), time.perf_counter()
        for number in range(requests + IN_FLIGHT):
            if number < requests:
                connection.sendall(frame)
            if number >= IN_FLIGHT:
                receive(connection)
        return measured(broker, cpu_before, start, requests * records)


def consume_raw(broker: Served, topic: str) -> Cost:
    """Read a megabyte from the start repeatedly, until the number of messages is reached."""
    frame = fetch_frame(topic, 0, wait_ms=0)
    per_answer = (1 << 20) // (VALUE_BYTES + 10)
    requests = MESSAGES // per_answer
    with broker.connect() as connection:
        cpu_before, start = broker.cpu_seconds(), time.perf_counter()
        for _ in range(requests):
            connection.sendall(frame)
            receive(connection)
        return measured(broker, cpu_before, start, requests * per_answer)


if __name__ == "__main__":
    main()
