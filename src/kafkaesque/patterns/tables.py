"""A compacted topic as a dictionary that is always up to date."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from kafkaesque.errors import PatternError, TableFull
from kafkaesque.patterns.connection import Client, Ends, make_topics, settings
from kafkaesque.patterns.message import Data
from kafkaesque.patterns.opening import Opening
from kafkaesque.patterns.reader import Batch, Reader
from kafkaesque.patterns.sender import Sender
from kafkaesque.patterns.topic_watch import LOOK_SECONDS, Follower
from kafkaesque.types import Offset

KEYS_MAX = 1_000_000
_IN_FLIGHT_MAX = 10_000
_LOOK_AGAIN_SECONDS = 0.1


class Table(Opening, Mapping[bytes, bytes]):
    """The last value of every key of a topic; `async with` it, in one event loop.

    Entering reads the whole topic; from then on the table follows all writes. `put` and `delete`
    return when this table has the change. A key that was never written, or whose last value is
    null, is missing. Partitions added to the topic are noticed within `look_seconds`; keys then
    move to other partitions, so the last record of a key is the one with the latest timestamp.
    """

    def __init__(self, client: Client, topic: str, *, keys_max: int, look_seconds: float) -> None:
        self._client = client
        self._topic = topic
        self._keys_max = keys_max
        self._rows: dict[bytes, bytes] = {}
        self._written: dict[bytes, tuple[int, int]] = {}
        """Partition and timestamp of each key's last record; until live, of deleted keys too."""
        self._count = 0
        self._positions: dict[int, Offset] = {}
        self._moved = asyncio.Event()
        self._is_full = False
        self._is_live = False
        self._sender = Sender(client)
        self._follower = Follower(client, self._follow, look_seconds)
        self._reader = Reader(
            settings(
                client,
                {"fetch.wait.max.ms": 100},
                {
                    "group.id": "kafkaesque-table",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                },
            ),
            self._take,
            in_flight_max=_IN_FLIGHT_MAX,
        )

    async def _open(self, stack: AsyncExitStack) -> None:
        topics = {self._topic: {"cleanup.policy": "compact"}}
        self._count = (await asyncio.to_thread(make_topics, self._client, topics))[self._topic]
        self._ends = Ends(self._client)
        await stack.enter_async_context(self._sender)
        await self._reader.start(self._begin)
        stack.push_async_callback(self._reader.stop)
        await self.refresh()
        # From now on records arrive as written: no older one follows a deletion.
        self._written = {key: self._written[key] for key in self._rows}
        self._is_live = True
        self._follower.start()
        stack.push_async_callback(self._follower.stop)

    def __getitem__(self, key: bytes | str) -> bytes:
        self._check()
        return self._rows[key.encode() if isinstance(key, str) else key]

    def __iter__(self) -> Iterator[bytes]:
        self._check()
        return iter(self._rows)

    def __len__(self) -> int:
        self._check()
        return len(self._rows)

    async def put(self, key: bytes | str, value: bytes | str) -> None:
        """Set a key; returns when this table has it. Raises Undelivered."""
        await self._write(key, value)

    async def delete(self, key: bytes | str) -> None:
        """Remove a key; returns when this table has done so. Raises Undelivered."""
        await self._write(key, None)

    async def refresh(self) -> None:
        """Return when the table has everything written before the call."""
        count = self._count
        places = [TopicPartition(self._topic, partition) for partition in range(count)]

        def reached(consumer: Consumer) -> dict[int, Offset]:
            # The last records of a partition may be gone, compacted or transaction markers, so the
            # consumer's position counts too.
            return {one.partition: one.offset for one in consumer.position(places)}

        wanted = await asyncio.to_thread(self._ends.ask, self._topic, range(count))
        while True:
            self._check()
            behind = [p for p, end in wanted.items() if self._positions.get(p, 0) < end]
            if not behind:
                return
            at = await self._reader.call(reached)
            # Batches are handed over in order: what the consumer has passed is here by now.
            if all(self._positions.get(p, 0) >= wanted[p] or at[p] >= wanted[p] for p in behind):
                self._check()  # the last records may have been too many
                return
            await self._wait()

    async def _write(self, key: bytes | str, value: Data) -> None:
        data = key.encode() if isinstance(key, str) else key
        partition, offset = await self._sender.send(self._topic, value, key=data)
        if partition >= self._count:
            with suppress(PatternError):  # otherwise it is noticed later
                await self._follow(await self._follower.look())
        while self._positions.get(partition, 0) <= offset:
            self._check()
            await self._wait()
        self._check()

    async def _wait(self) -> None:
        self._moved.clear()
        await self._reader.wait(self._moved, _LOOK_AGAIN_SECONDS)

    def _begin(self, consumer: Consumer) -> None:
        consumer.assign(
            [TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in range(self._count)]
        )

    async def _follow(self, found: Mapping[str, int]) -> None:
        """Read new partitions."""
        known, count = self._count, found.get(self._topic, 0)
        if count > known:
            self._count = count
            places = [
                TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in range(known, count)
            ]
            await self._reader.call(lambda consumer: consumer.incremental_assign(places))

    def _take(self, batch: Batch) -> None:
        for raw in batch:
            key, value = raw.key(), raw.value()
            partition, offset = raw.partition(), raw.offset()
            assert partition is not None and offset is not None
            self._positions[partition] = offset + 1
            if key is not None:  # records without a key do not belong in a table
                self._set(key, value, (partition, raw.timestamp()[1]))
        self._reader.release(len(batch))
        self._moved.set()

    def _set(self, key: bytes, value: bytes | None, written: tuple[int, int]) -> None:
        last = self._written.get(key, written)
        if last[0] != written[0] and last[1] > written[1]:
            return  # older than ours, from a partition that is read later
        if value is None:
            self._rows.pop(key, None)
            self._written.pop(key, None)
            if not self._is_live and len(self._written) < self._keys_max:
                self._written[key] = written
        elif key in self._rows or len(self._rows) < self._keys_max:
            self._rows[key] = value
            self._written[key] = written
        else:
            self._is_full = True

    def _check(self) -> None:
        if self._is_full:
            raise TableFull(f"{self._topic} has more than {self._keys_max} keys")
        failure = self._reader.failure
        if failure.done() and not failure.cancelled():
            failure.result()


def table(
    client: Client,
    topic: str,
    *,
    keys_max: int = KEYS_MAX,
    look_seconds: float = LOOK_SECONDS,
) -> Table:
    """Return a table of the topic; creates it with `cleanup.policy=compact` if it is missing."""
    return Table(client, topic, keys_max=keys_max, look_seconds=look_seconds)
