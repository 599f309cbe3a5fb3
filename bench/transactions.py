"""What do transactions cost, in speed and memory, and how many are possible per second?

A producer with transactions of 100 ms is compared with a merely idempotent one: 100-byte messages
in batches of up to 1 MB, in turns on one broker. The result is the median ratio of neighbouring
rounds, because other load comes and goes; if the ratios differ widely, it says nothing. Then it
counts how many transactions of 1 and of 100 messages are committed per second by 1, 4 and 16
producers at once. Memory is Python's, for each open transaction at its coordinator and for each
producer at a partition; of 100,000 producers the expired ones must be gone. Prints JSON lines.
"""

import json
import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable

from confluent_kafka import Producer

from bench.serving import Served, serving
from kafkaesque.ages import Ages
from kafkaesque.broker.partition.producers import Producers
from kafkaesque.config import ProducerConfig
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.machines.decision import Now
from kafkaesque.machines.transactions.transaction_commands import Add, Init
from kafkaesque.machines.transactions.transaction_commands import Producer as Known
from kafkaesque.machines.transactions.transactions import Transactions
from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches

MESSAGES = 500_000
VALUE = bytes(100)
ROUNDS = 7
TRANSACTION_S = 0.1
LOOK_EVERY = 500
"""Messages between two readings of the clock."""
SECONDS_MAX = 60
COUNT_S = 3.0
CONCURRENT = (1, 4, 16)
OPEN = 1_000
PRODUCERS = 100_000
EXPIRATION_MS = 60_000
SETTINGS = {"flush.policy": "os"}


def main() -> None:
    """Measure and print."""
    with serving() as broker:
        report_rates(broker)
        for size in (1, 100):
            for count in CONCURRENT:
                rate = transactions_per_second(broker, size, count)
                line = {"messages": size, "producers": count, "transactions_per_s": round(rate)}
                print(json.dumps({"report": "transactions-per-second", **line}), flush=True)
    _print("transaction-memory", bytes_per_transaction(), "bytes")
    each, left = producers_at_rest()
    _print("producer-memory", each, "bytes")
    _print("producers-expire", 100 * (1 - left / PRODUCERS), "% gone")


def _print(figure: str, measured: float, unit: str, ratio: float | None = None) -> None:
    line = {"figure": figure, "measured": round(measured, 3), "unit": unit, "ratio": ratio}
    print(json.dumps(line), flush=True)


def a_producer(broker: Served, name: str | None = None) -> Producer:
    """Return an idempotent producer, or, with a name, a transactional one."""
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": f"127.0.0.1:{broker.port}",
        "enable.idempotence": True,
        "linger.ms": 5,
        "batch.size": 1_000_000,
        "batch.num.messages": 1_000_000,
        "queue.buffering.max.messages": 2_000_000,
    }
    if name is None:
        return Producer(settings)
    made = Producer({**settings, "transactional.id": name})
    made.init_transactions(SECONDS_MAX)
    return made


def report_rates(broker: Served) -> None:
    """Compare producers with and without transactions, in turns."""
    pairs: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        broker.create_topic(f"plain-{number}", SETTINGS)
        plain = rate_of(a_producer(broker), f"plain-{number}", None)
        broker.create_topic(f"whole-{number}", SETTINGS)
        one = a_producer(broker, f"rate-{number}")
        pairs.append((plain, rate_of(one, f"whole-{number}", TRANSACTION_S)))
    ratios = [whole / plain for plain, whole in pairs]
    best = max(whole for _, whole in pairs)
    _print("transactional-rate", best, "messages/s", round(statistics.median(ratios), 3))
    rounds = {
        "idempotent_per_s": [round(plain) for plain, _ in pairs],
        "transactional_per_s": [round(whole) for _, whole in pairs],
        "ratios": [round(one, 2) for one in ratios],
    }
    print(json.dumps({"report": "transactional-rate", **rounds}), flush=True)


def rate_of(producer: Producer, topic: str, transaction_s: float | None) -> float:
    """Return how many messages per second are acknowledged, or committed."""
    if transaction_s is None:  # its first message must wait for a producer id
        producer.produce(topic, VALUE)
        assert producer.flush(SECONDS_MAX) == 0
    producer.list_topics(topic, SECONDS_MAX)
    start = begun = time.perf_counter()
    if transaction_s is not None:
        producer.begin_transaction()
    for number in range(MESSAGES):
        producer.produce(topic, VALUE)
        if transaction_s is not None and number % LOOK_EVERY == 0:
            now = time.perf_counter()
            if now - begun >= transaction_s:
                producer.commit_transaction(SECONDS_MAX)
                producer.begin_transaction()
                begun = now
    if transaction_s is None:
        assert producer.flush(SECONDS_MAX) == 0
    else:
        producer.commit_transaction(SECONDS_MAX)
    return MESSAGES / (time.perf_counter() - start)


def transactions_per_second(broker: Served, size: int, count: int) -> float:
    """Return how many transactions of `size` messages `count` producers commit per second."""
    topic = f"small-{size}-{count}"
    broker.create_topic(topic, SETTINGS)
    producers = [a_producer(broker, f"{topic}-{number}") for number in range(count)]
    done = [0] * count
    end = time.perf_counter() + COUNT_S

    def commit_on(place: int) -> None:
        producer = producers[place]
        while time.perf_counter() < end:
            producer.begin_transaction()
            for _ in range(size):
                producer.produce(topic, VALUE)
            producer.commit_transaction(SECONDS_MAX)
            done[place] += 1

    threads = [threading.Thread(target=commit_on, args=(place,)) for place in range(count)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - start)


def held_bytes(make: Callable[[], object]) -> tuple[object, int]:
    """Return the result of `make`, and the memory that it holds."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    made = make()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, after - before


def bytes_per_transaction() -> float:
    """Return a coordinator's memory for each open transaction over three partitions."""

    def make() -> Transactions:
        machine = Transactions(TransactionConfig(open_max=OPEN + 1))
        now = Now(10_000, 1_700_000_000_000)
        for number in range(OPEN):
            name = f"producer-{number}"
            begin = Init(transactional_id=name, timeout_ms=60_000, expected=None, fresh_id=number)
            for record in machine.init(begin, lambda _: None, now).records:
                machine.apply(record)
            places = tuple((bytes(16), index) for index in range(3))
            add = Add(transactional_id=name, producer=Known(number, 0), places=places)
            for record in machine.add(add, lambda _: None, now).records:
                machine.apply(record)
        return machine

    _, held = held_bytes(make)
    return held / OPEN


def producers_at_rest() -> tuple[float, int]:
    """Return a partition's memory for each producer, and how many producers are left in the end."""
    config = ProducerConfig(producers_max=PRODUCERS, expiration_ms=EXPIRATION_MS)
    record = Record(offset=0, timestamp_ms=0, key=None, value=b"x")

    def make() -> Producers:
        made = Producers(config)
        for number in range(PRODUCERS):
            stamp = ProducerStamp(producer_id=number, producer_epoch=0, base_sequence=0)
            (view,) = split_batches(build_batch([record], producer=stamp))
            made.check(view)
            made.apply(view, number, now_ms=0)
        return made

    made, held = held_bytes(make)
    assert isinstance(made, Producers)
    made.expire(Ages(now_ms=EXPIRATION_MS))
    assert len(made) == PRODUCERS, "they have not expired yet"
    made.expire(Ages(now_ms=EXPIRATION_MS + 1))
    return held / PRODUCERS, len(made)


if __name__ == "__main__":
    main()
