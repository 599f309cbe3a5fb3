"""What `kafkaesque bench` runs: messages sent, read, or followed from end to end.

All of it uses confluent-kafka in one process. If a message is due at a given time, its latency
counts from then, not from when the client sent it: a broker that stalls is charged for everything
that it delayed (no coordinated omission).
"""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkaesque.callbacks import ignore
from kafkaesque.cli.histogram import Histogram
from kafkaesque.client.errors import Refused, Unreachable
from kafkaesque.client.topics import Place
from kafkaesque.types import Offset

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

MARK_BYTES = 16
"""A followed message carries its due time and the id of its run."""

_SECOND_NS = 1_000_000_000
_FLUSH_SECONDS_MAX = 60
_SILENCE_SECONDS_MAX = 30
_POLL_SECONDS = 0.1
_POLL_MESSAGES_MAX = 10_000
_CLOCK_EVERY = 64
_WARM_UP_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send."""

    topic: str
    size: int
    seconds: float
    count: int | None = None
    rate: float | None = None
    """Messages per second; None means as fast as possible."""
    settings: Mapping[str, str | int] | None = None
    """Settings of librdkafka's producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was done, and how long it took."""

    messages: int
    message_bytes: int
    """Total of all messages."""
    seconds: float
    latencies: Histogram | None = None

    def facts(self) -> dict[str, object]:
        """Return the outcome for JSON."""
        found: dict[str, object] = {
            "messages": self.messages,
            "seconds": round(self.seconds, 6),
            "messages_per_second": round(self.messages / self.seconds, 1),
            "bytes_per_second": round(self.message_bytes / self.seconds),
        }
        if self.latencies is not None and self.latencies.count:
            found["latency_ms"] = {
                name: self.latencies.percentile(percent) / 1e6 for name, percent in PERCENTS.items()
            }
        return found


PERCENTS = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}


def send(bootstrap: str, load: Load) -> Outcome:
    """Send until the time or the count is reached and everything is acknowledged.

    With a rate, the latencies are those of the acknowledgements. Raises Refused if a message is
    refused, and Unreachable if the last ones are not acknowledged in time.
    """
    latencies = None if load.rate is None else Histogram()
    reports = _Reports()
    producer = _producer(bootstrap, load, reports)
    value = os.urandom(load.size)
    start = time.perf_counter_ns()
    end = start + int(load.seconds * _SECOND_NS)
    sent = 0
    while load.count is None or sent < load.count:
        if load.rate is None:
            if sent % _CLOCK_EVERY == 0 and time.perf_counter_ns() >= end:
                break
            _queue(producer, load.topic, value, reports.came)
        else:
            due = start + int(sent * _SECOND_NS / load.rate)
            if due >= end:
                break
            _wait_until(due, producer)
            _queue(producer, load.topic, value, _noting(reports, latencies, due))
        sent += 1
    _flush(producer, reports)
    return Outcome(
        messages=sent,
        message_bytes=sent * load.size,
        seconds=(time.perf_counter_ns() - start) / _SECOND_NS,
        latencies=latencies,
    )


def read(
    bootstrap: str,
    starts: Mapping[Place, Offset],
    ends: Mapping[Place, Offset],
    *,
    seconds: float,
    count: int | None = None,
) -> Outcome:
    """Read from `starts` to `ends`, or until the time or the count is reached.

    The clock starts at the first message. Raises Unreachable if no message comes for long.
    """
    consumer = _consumer(bootstrap)
    _assign(consumer, starts)
    left = {place for place in starts if starts[place] < ends[place]}
    messages = message_bytes = 0
    begun = last = time.perf_counter_ns()
    while left and (count is None or messages < count):
        came = consumer.consume(_POLL_MESSAGES_MAX, _POLL_SECONDS)
        now = time.perf_counter_ns()
        if came:
            begun = begun if messages else now
            last = now
        elif now - last > _SILENCE_SECONDS_MAX * _SECOND_NS:
            raise Unreachable("no message arrived for a long time")
        for message in came:
            is_end = _is_end(message)
            place = (str(message.topic()), int(message.partition() or 0))
            if is_end or (message.offset() or 0) + 1 >= ends[place]:
                left.discard(place)
            if not is_end:
                messages += 1
                message_bytes += len(message.value() or b"")
        if messages and now - begun > seconds * _SECOND_NS:
            break
    consumer.close()
    taken = max(1, last - begun)
    return Outcome(messages=messages, message_bytes=message_bytes, seconds=taken / _SECOND_NS)


def follow(bootstrap: str, load: Load, ends: Mapping[Place, Offset]) -> Outcome:
    """Send at a fixed rate, and note how late each message arrives at a consumer.

    `ends` are the topic's current ends. Messages of other producers are not counted. Raises
    Unreachable if messages are still missing long after the last one was sent.
    """
    assert load.rate is not None, "latencies need a rate"
    assert load.size >= MARK_BYTES, "a message has room for its mark"
    reports = _Reports()
    producer = _producer(bootstrap, load, reports)
    follower = _Follower(bootstrap, ends)
    count = max(1, int(load.rate * load.seconds))
    rest = os.urandom(load.size - MARK_BYTES)
    with follower:
        start = time.perf_counter_ns() + int(_WARM_UP_SECONDS * _SECOND_NS)
        for number in range(count):
            due = start + int(number * _SECOND_NS / load.rate)
            _wait_until(due, producer)
            mark = due.to_bytes(8, "big") + follower.name
            _queue(producer, load.topic, mark + rest, reports.came)
        _flush(producer, reports)
        follower.await_count(count)
    return Outcome(
        messages=count,
        message_bytes=count * load.size,
        seconds=load.seconds,
        latencies=follower.latencies,
    )


class _Follower:
    """A consumer on its own thread that records how late our messages arrive."""

    def __init__(self, bootstrap: str, ends: Mapping[Place, Offset]) -> None:
        self.name = os.urandom(MARK_BYTES - 8)
        self.latencies = Histogram()
        self._consumer = _consumer(bootstrap)
        _assign(self._consumer, ends)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._go, name="bench-follower")
        self._error: Refused | None = None

    def __enter__(self) -> "_Follower":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close()

    def await_count(self, count: int) -> None:
        """Return when this many have arrived; raises Unreachable if they do not."""
        deadline = time.monotonic() + _SILENCE_SECONDS_MAX
        while self.latencies.count < count and self._error is None:
            if time.monotonic() > deadline:
                missing = count - self.latencies.count
                raise Unreachable(f"{missing} of {count} messages did not arrive")
            time.sleep(_POLL_SECONDS / 10)
        if self._error is not None:
            raise self._error

    def _go(self) -> None:
        while not self._is_over.is_set():
            message = self._consumer.poll(_POLL_SECONDS)
            now = time.perf_counter_ns()
            if message is None:
                continue
            try:
                if _is_end(message):
                    continue
            except Refused as error:
                self._error = error
                return
            value = message.value() or b""
            if value[8:MARK_BYTES] == self.name:
                self.latencies.add(max(0, now - int.from_bytes(value[:8], "big")))


class _Reports:
    """Delivery reports of librdkafka; the first error is kept."""

    def __init__(self) -> None:
        self.error: str | None = None

    def came(self, error: "KafkaError | None", _: object) -> None:
        """Handle one report."""
        if error is not None and self.error is None:
            self.error = error.str()


def _noting(reports: _Reports, latencies: Histogram | None, due: int) -> Any:
    def came(error: "KafkaError | None", message: object) -> None:
        reports.came(error, message)
        if latencies is not None:
            latencies.add(max(0, time.perf_counter_ns() - due))

    return came


def _producer(bootstrap: str, load: Load, reports: _Reports) -> "Producer":
    from confluent_kafka import Producer

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "kafkaesque-bench",
        "log_level": 0,
        "error_cb": ignore,  # of connections: what matters comes with the messages
        "queue.buffering.max.messages": 1_000_000,
        # A report for each message would take longer than sending it.
        "delivery.report.only.error": load.rate is None,
        **(load.settings or {}),
    }
    if load.rate is not None:
        settings.setdefault("linger.ms", 0)
    producer = Producer(settings)
    producer.list_topics(load.topic, _FLUSH_SECONDS_MAX)
    return producer


def _consumer(bootstrap: str) -> "Consumer":
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "kafkaesque-bench",
            "group.id": "kafkaesque-bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,  # a mark may follow the last message
            "log_level": 0,
            "error_cb": ignore,  # of connections: what matters comes with the messages
        }
    )


def _assign(consumer: "Consumer", starts: Mapping[Place, Offset]) -> None:
    from confluent_kafka import TopicPartition

    rows: Sequence[TopicPartition] = [TopicPartition(*place, at) for place, at in starts.items()]
    consumer.assign(list(rows))


def _queue(producer: "Producer", topic: str, value: bytes, came: Any) -> None:
    while True:  # ends: queued messages are sent or time out, which makes room
        try:
            producer.produce(topic, value, on_delivery=came)
        except BufferError:
            producer.poll(_POLL_SECONDS)
            continue
        return


def _wait_until(due: int, producer: "Producer") -> None:
    producer.poll(0)
    left = due - time.perf_counter_ns()
    if left > 0:
        time.sleep(left / _SECOND_NS)


def _flush(producer: "Producer", reports: _Reports) -> None:
    left = producer.flush(_FLUSH_SECONDS_MAX)
    if reports.error is not None:
        raise Refused(f"a message was refused: {reports.error}", reports.error)
    if left:
        raise Unreachable(f"{left} messages were not acknowledged")


def _is_end(message: "Message") -> bool:
    """Return whether this only marks the end of a partition; raises Refused for an error."""
    error = message.error()
    if error is None:
        return False
    if error.name() != "_PARTITION_EOF":
        raise Refused(f"topic {message.topic()}: {error.str()}", error.name())
    return True
