"""Publish and subscribe: a subscriber gets every message published while it listens."""

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from contextlib import AsyncExitStack

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from kafkaesque.callbacks import ignore
from kafkaesque.errors import InvalidPattern
from kafkaesque.patterns.connection import Client, Ends, make_topics, settings
from kafkaesque.patterns.message import Message, from_client
from kafkaesque.patterns.opening import Opening
from kafkaesque.patterns.reader import Batch, Reader
from kafkaesque.patterns.sender import Sender
from kafkaesque.patterns.topic_watch import LOOK_SECONDS, Follower

BUFFER_MAX = 10_000
"""Messages that a subscription buffers for a slow reader; the rest waits in the broker."""


class Subscription(Opening):
    """The messages of some topics as they arrive: `async for message in subscription`.

    `async with` it, in one event loop. It has no group and no memory: it starts at the end, or at
    the beginning, and messages published before its topic was added are not seen. Topics can be
    added and dropped at any time. A name that starts with `^` is a regular expression for all
    topics that match. New partitions, and new topics that match, are noticed within `look_seconds`
    and read from their beginning.
    """

    def __init__(
        self,
        client: Client,
        topics: tuple[str, ...],
        *,
        buffer_max: int,
        from_beginning: bool,
        look_seconds: float,
    ) -> None:
        self._client = client
        self._first = topics
        self._from_beginning = from_beginning
        self._topics: dict[str, int] = {}
        self._named: set[str] = set()
        self._expressions: dict[str, re.Pattern[str]] = {}
        self._changing = asyncio.Lock()
        self._buffer: deque[Message] = deque()
        self._came = asyncio.Event()
        self._follower = Follower(client, self._follow, look_seconds)
        self._reader = Reader(
            settings(
                client,
                {"fetch.wait.max.ms": 100},  # adding a topic waits for the current poll
                {
                    "group.id": "kafkaesque-subscription",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                },
            ),
            self._take,
            in_flight_max=buffer_max,
        )

    async def _open(self, stack: AsyncExitStack) -> None:
        self._ends = Ends(self._client)
        await self._reader.start(ignore)
        stack.push_async_callback(self._reader.stop)
        self._follower.start()
        stack.push_async_callback(self._follower.stop)
        for topic in self._first:
            await self.add(topic)

    @property
    def topics(self) -> frozenset[str]:
        """The subscribed topics and patterns."""
        return frozenset(self._topics)

    async def add(self, topic: str) -> None:
        """Subscribe to one more topic: everything published after this returns is seen."""
        async with self._changing:
            if topic.startswith("^"):
                expression = _compile(topic)
                found = await self._follower.look()
                counts = {name: count for name, count in found.items() if expression.match(name)}
                self._expressions[topic] = expression
            else:
                counts = await asyncio.to_thread(make_topics, self._client, {topic: {}})
                self._named.add(topic)
            for name, count in counts.items():
                if name not in self._topics:
                    await self._begin(name, count)

    async def drop(self, topic: str) -> None:
        """Unsubscribe from it; its buffered messages are dropped too."""
        async with self._changing:
            self._named.discard(topic)
            self._expressions.pop(topic, None)
            for name in [name for name in self._topics if not self._is_wanted(name)]:
                await self._end(name)

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Message:
        """Return the next message; raises PatternError if no more can come."""
        while not self._buffer:
            self._came.clear()
            await self._reader.wait(self._came)
            if self._reader.failure.done() and not self._buffer:
                self._reader.failure.result()
        self._reader.release(1)
        return self._buffer.popleft()

    def _is_wanted(self, topic: str) -> bool:
        return topic in self._named or any(one.match(topic) for one in self._expressions.values())

    async def _begin(self, topic: str, count: int) -> None:
        starts = dict.fromkeys(range(count), OFFSET_BEGINNING)
        if not self._from_beginning:
            # Asked now: the consumer would look later, and miss messages in between.
            starts = await asyncio.to_thread(self._ends.ask, topic, range(count))
        await self._assign(topic, starts)

    async def _assign(self, topic: str, starts: Mapping[int, int]) -> None:
        places = [TopicPartition(topic, partition, start) for partition, start in starts.items()]
        self._topics[topic] = self._topics.get(topic, 0) + len(places)
        await self._reader.call(lambda consumer: consumer.incremental_assign(places))

    async def _end(self, topic: str) -> None:
        places = [TopicPartition(topic, each) for each in range(self._topics.pop(topic))]
        await self._reader.call(lambda consumer: consumer.incremental_unassign(places))
        kept = [message for message in self._buffer if message.topic != topic]
        self._reader.release(len(self._buffer) - len(kept))
        self._buffer = deque(kept)

    async def _follow(self, found: Mapping[str, int]) -> None:
        """Read new partitions and topics from their beginning."""
        async with self._changing:
            for topic, count in found.items():
                known = self._topics.get(topic, 0)
                if count > known and self._is_wanted(topic):
                    await self._assign(topic, dict.fromkeys(range(known, count), OFFSET_BEGINNING))

    def _take(self, batch: Batch) -> None:
        messages = [from_client(raw) for raw in batch]
        wanted = [message for message in messages if message.topic in self._topics]
        self._reader.release(len(messages) - len(wanted))
        self._buffer.extend(wanted)
        self._came.set()


def _compile(topic: str) -> "re.Pattern[str]":
    try:
        return re.compile(topic)
    except re.error as error:
        raise InvalidPattern(f"{topic!r} is not a regular expression: {error}") from error


def subscribe(
    client: Client,
    *topics: str,
    buffer_max: int = BUFFER_MAX,
    from_beginning: bool = False,
    look_seconds: float = LOOK_SECONDS,
) -> Subscription:
    """Return a subscription to these topics."""
    return Subscription(
        client,
        topics,
        buffer_max=buffer_max,
        from_beginning=from_beginning,
        look_seconds=look_seconds,
    )


def publish(client: Client) -> Sender:
    """Return a sender: `async with publish(client) as publisher: await publisher.send(…)`."""
    return Sender(client)
