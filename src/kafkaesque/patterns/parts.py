"""Reads ranges of partitions to their ends, whatever happens to the brokers meanwhile."""

from collections.abc import Generator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as ClientMessage

from kafkaesque.clock import Clock, SystemClock
from kafkaesque.errors import PatternError
from kafkaesque.patterns.connection import CONSUME_BATCH_MAX, Client, settings
from kafkaesque.types import Offset

SILENCE_MS_MAX = 30_000
"""Silence of all brokers after which reading fails."""
CONSUMER_MS_MAX = 5_000
"""A consumer that returns nothing for this long is replaced.

librdkafka may report a partition that lost its leader as unknown for longer than the election of
another takes; a new client knows at once.
"""
_POLL_SECONDS = 0.1


def read_parts(
    client: Client,
    topic: str,
    starts: Mapping[int, Offset],
    ends: Mapping[int, Offset],
    clock: Clock | None = None,
) -> Generator[ClientMessage, None, None]:
    """Yield the records of partitions from their starts up to their ends, each once. Blocks.

    If the beginning is gone, it starts with the first record left; it uses 0, because librdkafka's
    OFFSET_BEGINNING needs a lookup that waits half a second. Raises PatternError if not everything
    can be read: unread records are never reported as missing.
    """
    reading = _Reading(topic, starts, ends, clock or SystemClock())
    fixed = {
        "group.id": "kafkaesque-parts",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    wanted: Any = settings(client, {}, fixed)
    while reading.left:  # ends: each pass takes a while, and silence is limited
        consumer = Consumer(wanted)
        try:
            yield from reading.read(consumer)
        except KafkaException as error:
            raise PatternError(f"{topic} cannot be read: {error.args[0].str()}") from error
        finally:
            consumer.close()


class _Part:
    """What is left to read of one partition."""

    __slots__ = ("end", "next")

    def __init__(self, start: Offset, end: Offset) -> None:
        self.next = start
        self.end = end


class _Reading:
    """The progress of reading, over as many consumers as it takes."""

    def __init__(
        self,
        topic: str,
        starts: Mapping[int, Offset],
        ends: Mapping[int, Offset],
        clock: Clock,
    ) -> None:
        self._topic = topic
        self._clock = clock
        self._heard_ms = clock.monotonic_ms()
        self._said = "no broker answers"
        self.left = {
            partition: _Part(start, ends[partition])
            for partition, start in starts.items()
            if start < ends[partition]
        }

    def read(self, consumer: Consumer) -> Generator[ClientMessage, None, None]:
        """Yield what one consumer returns, until all is read or it is silent for too long."""
        left = self.left
        consumer.assign([TopicPartition(self._topic, at, part.next) for at, part in left.items()])
        heard_ms = self._clock.monotonic_ms()
        while left:
            is_heard = False
            for raw in consumer.consume(CONSUME_BATCH_MAX, _POLL_SECONDS):
                partition, offset = raw.partition() or 0, raw.offset() or 0
                part, error = left.get(partition), raw.error()
                if error is not None:
                    is_heard |= self._is_end(error, partition, offset)
                elif part is not None:
                    is_heard = True
                    if offset >= part.end - 1:
                        del left[partition]
                    # A consumer that was reset to the beginning returns some records again.
                    if part.next <= offset < part.end:
                        part.next = offset + 1
                        yield raw
            # Only now: the caller may have taken long with the messages.
            now_ms = self._clock.monotonic_ms()
            if is_heard:
                heard_ms = self._heard_ms = now_ms
            elif now_ms - self._heard_ms > SILENCE_MS_MAX:
                raise PatternError(f"{self._topic} cannot be read to its end: {self._said}")
            elif now_ms - heard_ms > CONSUMER_MS_MAX:
                return

    def _is_end(self, error: KafkaError, partition: int, offset: Offset) -> bool:
        """Handle an error event; return whether a partition was read to its end."""
        if error.code() != KafkaError._PARTITION_EOF:
            self._said = error.str()
            return False
        if partition not in self.left or offset < self.left[partition].end:
            # A leader that was just elected may not know the high watermark yet, and report the
            # end too early: more follows.
            return False
        del self.left[partition]
        return True
