"""Commits the position of each partition: one commit at a time, each with all that is known."""

import asyncio

from confluent_kafka import TopicPartition

from kafkaesque.errors import PatternError
from kafkaesque.patterns import intents
from kafkaesque.patterns.intents import Intent
from kafkaesque.patterns.prefix import DonePrefix
from kafkaesque.patterns.reader import Reader
from kafkaesque.types import Offset

Place = tuple[str, int]


class Progress:
    """One of our partitions: its messages under way, and the intents for its failures."""

    def __init__(self) -> None:
        self.prefix = DonePrefix()
        self.intents: dict[Offset, Intent] = {}
        self._committed: tuple[Offset, str] | None = None

    def to_commit(self) -> tuple[Offset, str] | None:
        """Return position and metadata if they are not those of the last commit."""
        position = self.prefix.position
        if position is None:
            return None
        # Messages before the position will not come again: their intents are no longer needed.
        for offset in [offset for offset in self.intents if offset < position]:
            del self.intents[offset]
        wanted = (position, intents.encode(self.intents))
        return None if wanted == self._committed else wanted

    def note(self, committed: tuple[Offset, str]) -> None:
        """Remember what was committed."""
        self._committed = committed


class Committer:
    """Commits at intervals, and at once for callers of `flush`."""

    def __init__(
        self, reader: Reader, progress: dict[Place, Progress], interval_seconds: float
    ) -> None:
        self._reader = reader
        self._progress = progress
        self._interval_seconds = interval_seconds
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[bool]] = []
        self.failures = 0
        """Failed commits; the next commit covers them."""

    async def run(self) -> None:
        """Commit until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._interval_seconds):
                    await self._wake.wait()
            except TimeoutError:
                pass
            await self.commit()

    async def flush(self) -> bool:
        """Return when all that is known now is committed; False if that failed."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wake.set()
        return await done

    async def commit(self) -> None:
        """Commit what has changed."""
        self._wake.clear()
        waiting, self._waiting = self._waiting, []
        rows = {
            place: row
            for place, progress in self._progress.items()
            if (row := progress.to_commit()) is not None
        }
        is_done = not rows or await self._try(rows)
        for done in waiting:
            if not done.done():
                done.set_result(is_done)

    async def _try(self, rows: dict[Place, tuple[Offset, str]]) -> bool:
        offsets = [
            TopicPartition(topic, partition, offset, metadata)
            for (topic, partition), (offset, metadata) in rows.items()
        ]
        try:
            # In the reader's thread: while another thread polls, a blocking commit never returns.
            answered = await self._reader.call(
                lambda consumer: consumer.commit(offsets=offsets, asynchronous=False)
            )
        except PatternError:
            # A rebalance, or no broker: uncommitted messages come again.
            self.failures += 1
            return False
        refused = {(one.topic, one.partition) for one in answered or [] if one.error is not None}
        self.failures += bool(refused)
        for place, row in rows.items():
            progress = self._progress.get(place)
            if progress is not None and place not in refused:
                progress.note(row)
        return not refused
