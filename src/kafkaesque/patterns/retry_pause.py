"""Pauses partitions of retry topics until their messages are due."""

from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from confluent_kafka import TopicPartition

from kafkaesque.patterns.committer import Place
from kafkaesque.patterns.message import to_headers
from kafkaesque.patterns.reader import Batch
from kafkaesque.patterns.retry_plan import due_ms

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from confluent_kafka import Message as ClientMessage


class Holding:
    """Holds back messages that are not due; used in the reader's thread.

    For each partition it keeps at most the one batch with the first such message, because the
    partition is paused from then on.
    """

    def __init__(self, topics: Collection[str], now_ms: Callable[[], int]) -> None:
        self._topics = frozenset(topics)
        self._now_ms = now_ms
        self._held: dict[Place, deque[ClientMessage]] = {}

    def sift(self, consumer: "Consumer", batch: Batch) -> Batch:
        """Return the messages that are due."""
        passed: Batch = []
        for raw in batch:
            topic, partition = raw.topic(), raw.partition()
            if topic not in self._topics:
                passed.append(raw)
                continue
            assert topic is not None and partition is not None
            held = self._held.get((topic, partition))
            if held is not None:
                held.append(raw)
            elif _due(raw) > self._now_ms():
                self._held[topic, partition] = deque([raw])
                consumer.pause([TopicPartition(topic, partition)])
            else:
                passed.append(raw)
        return passed

    def tick(self, consumer: "Consumer") -> Batch:
        """Return messages that have become due, and resume partitions that hold nothing more."""
        passed: Batch = []
        for place, held in list(self._held.items()):
            while held and _due(held[0]) <= self._now_ms():
                passed.append(held.popleft())
            if not held:
                del self._held[place]
                consumer.resume([TopicPartition(*place)])
        return passed

    def forget(self, places: set[Place]) -> None:
        """Drop messages of partitions that are no longer ours."""
        for place in places:
            self._held.pop(place, None)


def _due(raw: "ClientMessage") -> int:
    return due_ms(to_headers(raw.headers()))
