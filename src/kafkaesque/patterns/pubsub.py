"""Publish and subscribe: who listens gets all that comes from then on, and stops when he likes."""

import asyncio
from collections import deque
from types import TracebackType

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from kafkaesque.patterns.connection import Client, Ends, make_topics, settings
from kafkaesque.patterns.message import Message, from_client
from kafkaesque.patterns.reader import Batch, Reader
from kafkaesque.patterns.sender import Sender

BUFFER_MAX = 10_000
"""Messages that a subscription holds for a reader who is slow; the rest waits in the broker."""


class Subscription:
    """The messages of some topics as they come: `async for message in subscription`.

    `async with` it, in one event loop. It has no group and no memory: it begins at the end, or at
    the beginning, and what was published before its topic was added is not seen. Topics are added
    and dropped at any time. Partitions that a topic gets later are not seen until it is added anew.
    """

    def __init__(
        self, client: Client, topics: tuple[str, ...], *, buffer_max: int, from_beginning: bool
    ) -> None:
        self._client = client
        self._first = topics
        self._from_beginning = from_beginning
        self._topics: dict[str, int] = {}
        self._buffer: deque[Message] = deque()
        self._came = asyncio.Event()
        self._reader = Reader(
            settings(
                client,
                {"fetch.wait.max.ms": 100},  # a topic that is added waits for the poll under way
                {
                    "group.id": "kafkaesque-subscription",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                },
            ),
            self._take,
            in_flight_max=buffer_max,
        )

    async def __aenter__(self) -> "Subscription":
        self._ends = Ends(self._client)
        await self._reader.start(lambda _: None)
        for topic in self._first:
            await self.add(topic)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._reader.stop()

    @property
    def topics(self) -> frozenset[str]:
        """What is listened to."""
        return frozenset(self._topics)

    async def add(self, topic: str) -> None:
        """Listen to one more topic: all that is published after this returns is seen."""
        if topic in self._topics:
            return
        count = (await asyncio.to_thread(make_topics, self._client, {topic: {}}))[topic]
        starts = dict.fromkeys(range(count), OFFSET_BEGINNING)
        if not self._from_beginning:
            # Asked for now: the consumer would look later, and miss what comes in between.
            starts = await asyncio.to_thread(self._ends.ask, topic, range(count))
        places = [TopicPartition(topic, partition, start) for partition, start in starts.items()]
        self._topics[topic] = count
        await self._reader.call(lambda consumer: consumer.incremental_assign(places))

    async def drop(self, topic: str) -> None:
        """Listen to it no longer; what came before and was not taken yet is dropped too."""
        count = self._topics.pop(topic, 0)
        places = [TopicPartition(topic, partition) for partition in range(count)]
        if places:
            await self._reader.call(lambda consumer: consumer.incremental_unassign(places))
        kept = [message for message in self._buffer if message.topic != topic]
        self._reader.release(len(self._buffer) - len(kept))
        self._buffer = deque(kept)

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Message:
        """Return the next message; raises PatternError if none can come any more."""
        while not self._buffer:
            self._came.clear()
            await self._reader.wait(self._came)
            if self._reader.failure.done() and not self._buffer:
                self._reader.failure.result()
        self._reader.release(1)
        return self._buffer.popleft()

    def _take(self, batch: Batch) -> None:
        messages = [from_client(raw) for raw in batch]
        wanted = [message for message in messages if message.topic in self._topics]
        self._reader.release(len(messages) - len(wanted))
        self._buffer.extend(wanted)
        self._came.set()


def subscribe(
    client: Client, *topics: str, buffer_max: int = BUFFER_MAX, from_beginning: bool = False
) -> Subscription:
    """Return a subscription to these topics."""
    return Subscription(client, topics, buffer_max=buffer_max, from_beginning=from_beginning)


def publish(client: Client) -> Sender:
    """Return what sends: `async with publish(client) as publisher: await publisher.send(…)`."""
    return Sender(client)
