"""A member of a consumer group that runs a handler: lanes, deadlines, commits, and a clean stop.

Workers and responders are both built on it; they differ in what follows a failure.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from types import CoroutineType
from typing import Any, TypeAlias

from confluent_kafka import Consumer, TopicPartition

from kafkaesque.errors import InvalidPattern
from kafkaesque.patterns.committer import Committer, Place, Progress
from kafkaesque.patterns.connection import Client, settings
from kafkaesque.patterns.delivery import NO_DEADLINE, Delivery, HandlerTooSlow, Settled, WrongType
from kafkaesque.patterns.keyed_queue import KeyedQueue
from kafkaesque.patterns.prefix import DonePrefix
from kafkaesque.patterns.reader import Batch, Reader
from kafkaesque.patterns.retry_plan import RetryPlan

Handler: TypeAlias = Callable[[Delivery], Awaitable[Any]]
Settle: TypeAlias = Callable[[Delivery, Any], Awaitable[None]]

JOIN_SECONDS_MAX = 30.0
REFRESH_MS = 10_000
"""How late a group notices partitions added to a topic; librdkafka takes minutes."""
_MESSAGES_PER_TURN = 200
"""After this many messages a lane whose handler never waits yields to the others."""
_WATCH_SECONDS_MIN, _WATCH_SECONDS_MAX = 0.005, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Limits of one member of a group."""

    concurrency: int = 16
    """Handlers that run concurrently."""
    in_flight_max: int = 2_000
    """Messages read and not done; at most this many come again after a crash."""
    deadline_seconds: float = 30.0
    """A handler that takes longer is cancelled, and the attempt fails."""
    commit_seconds: float = 0.5
    """How often the done prefix is committed."""
    drain_seconds: float = 10.0
    """How long handlers may run on when the worker stops or loses a partition."""

    def __post_init__(self) -> None:
        if not 0 < self.concurrency <= self.in_flight_max:
            raise InvalidPattern("concurrency must be from 1 to in_flight_max")
        if min(self.deadline_seconds, self.commit_seconds, self.drain_seconds) <= 0:
            raise InvalidPattern("times must be above 0")


class Lane:
    """A slot in which one handler runs at a time."""

    __slots__ = ("cancels", "delivery", "seen", "since", "task")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.delivery: Delivery | None = None
        self.seen: Delivery | None = None
        self.since = 0.0
        """When the watch first saw it working on `seen`."""
        self.cancels = 0
        """How often its handler was cancelled as overdue."""


class Engine:
    """Reads topics as a member of a group and runs a handler for each message.

    `settle` is called for failures and for results that are not None. Until it returns, the message
    counts as under way. `inherit` runs in the reader's thread when partitions are assigned, and may
    fill their Progress.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        handler: Handler,
        settle: Settle,
        *,
        limits: EngineSettings,
        plan: RetryPlan,
    ) -> None:
        self._handler = handler
        self._settle = settle
        self._limits = limits
        self._release_every = 1 + limits.in_flight_max // (4 * limits.concurrency)
        self._plan = plan
        self._settings = settings(
            client,
            {
                "session.timeout.ms": 10_000,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": REFRESH_MS,
            },
            {"group.id": group, "enable.auto.commit": False, "enable.auto.offset.store": False},
        )
        self.progress: dict[Place, Progress] = {}
        self.inherit: Callable[[Consumer, dict[Place, Progress]], None] | None = None
        self.sift: Callable[[Consumer, Batch], Batch] | None = None
        self.tick: Callable[[Consumer], Batch] | None = None
        self.forget: Callable[[set[Place]], None] | None = None
        self.done = 0
        """Messages that are done, whatever their outcome."""

    async def start(self, topics: list[str]) -> None:
        """Join the group; return once partitions are assigned, reading fails, or a time passes."""
        self._loop = asyncio.get_running_loop()
        self._queue: KeyedQueue[Delivery] = KeyedQueue()
        self._sleepers: deque[asyncio.Future[None]] = deque()
        self._lanes = [Lane() for _ in range(self._limits.concurrency)]
        self._joined = asyncio.Event()
        self._is_stopping = False
        self._reader = Reader(
            self._settings,
            self._feed,
            in_flight_max=self._limits.in_flight_max,
            sift=self.sift,
            tick=self.tick,
        )
        self.committer = Committer(self._reader, self.progress, self._limits.commit_seconds)
        await self._reader.start(
            lambda consumer: consumer.subscribe(
                topics, on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
            )
        )
        self._tasks = [asyncio.ensure_future(self._work(lane)) for lane in self._lanes]
        self._tasks.append(asyncio.ensure_future(self._watch()))
        self._tasks.append(asyncio.ensure_future(self.committer.run()))
        try:
            await self._reader.wait(self._joined, JOIN_SECONDS_MAX)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Wait a limited time for handlers, commit, leave the group; raises what failed inside."""
        await self._drain(set(self.progress))
        for task in self._tasks:
            task.cancel()
        # A handler that ignores its cancellation is left behind: its message comes again elsewhere.
        ended, _ = await asyncio.wait(self._tasks, timeout=self._limits.drain_seconds)
        self._is_stopping = True
        await self.committer.commit()
        await self._reader.stop()
        for task in ended:
            if not task.cancelled():
                task.result()

    async def failed(self) -> None:
        """Wait until something inside fails, and raise it."""
        await asyncio.wait(
            [*self._tasks, self._reader.failure], return_when=asyncio.FIRST_COMPLETED
        )
        for future in [*self._tasks, self._reader.failure]:
            if future.done() and not future.cancelled():
                future.result()

    def _feed(self, batch: Batch) -> None:
        """Put messages into the queue, and wake as many lanes as have work."""
        dropped = 0
        put, plan = self._queue.put, self._plan
        topic: str | None = None
        partition: int | None = None
        prefix: DonePrefix | None = None
        for raw in batch:
            # Messages come in runs of one partition: look its progress up once per run.
            if raw.partition() != partition or raw.topic() != topic:
                topic, partition = raw.topic(), raw.partition()
                progress = self.progress.get((topic, partition))  # type: ignore[arg-type]
                prefix = None if progress is None else progress.prefix
            if prefix is None or prefix.is_closed:
                dropped += 1  # the partition was revoked while the batch was on its way
                continue
            offset = raw.offset()
            assert offset is not None
            prefix.begin(offset)
            put(raw.key(), Delivery(raw, offset, plan, prefix))
        self._reader.release(dropped)
        if self._queue.ready:
            for _ in range(min(len(self._queue), len(self._sleepers))):
                sleeper = self._sleepers.popleft()
                if not sleeper.done():
                    sleeper.set_result(None)

    async def _work(self, lane: Lane) -> None:
        """Run handlers, one after another."""
        lane.task = asyncio.current_task()
        left = _MESSAGES_PER_TURN
        unreleased = 0
        queue, handler, not_yet = self._queue, self._handler, Settled.NOT_YET
        while True:
            if not queue.ready:
                self._reader.release(unreleased)
                unreleased = 0
                sleeper = self._loop.create_future()
                self._sleepers.append(sleeper)
                await sleeper
                continue
            key, delivery = queue.take()
            prefix = delivery.prefix
            if not prefix.is_closed:
                # The common case is inlined: calls are what a message costs.
                lane.delivery = delivery
                result: Any = None
                error: BaseException | None = None
                try:
                    coming = handler(delivery)
                    if type(coming) is not CoroutineType and not inspect.isawaitable(coming):
                        raise WrongType("the handler is not an async function")  # noqa: TRY301
                    result = await coming
                except asyncio.CancelledError as cancelled:
                    if not lane.cancels:
                        raise
                    error = cancelled
                except Exception as raised:  # noqa: BLE001 - a handler may raise anything
                    error = raised
                if error or lane.cancels or result is not None or delivery.settled is not not_yet:
                    await self._end(lane, delivery, result, error)
                lane.delivery = None
                self.done += 1
                prefix.finish(delivery.offset)
            queue.done(key)
            unreleased += 1
            left -= 1
            if unreleased >= self._release_every:
                self._reader.release(unreleased)
                unreleased = 0
            if not left:
                left = _MESSAGES_PER_TURN
                await asyncio.sleep(0)

    async def _end(
        self, lane: Lane, delivery: Delivery, result: Any, error: BaseException | None
    ) -> None:
        """Settle a message that failed or returned a result."""
        if isinstance(error, asyncio.CancelledError):
            error = HandlerTooSlow(f"not finished after {self._limits.deadline_seconds} s")
        if error is not None:
            delivery.nack(error)
        _take_back(lane)
        delivery.extended = NO_DEADLINE
        if delivery.settled is Settled.NOT_YET and result is None:
            delivery.ack()
        elif delivery.settled is not Settled.ACKED or result is not None:
            await self._settle(delivery, result)

    async def _watch(self) -> None:
        """Cancel handlers that are over their deadlines.

        Time counts from when the watch first sees a message: most are done before that, and need
        no reading of the clock.
        """
        deadline = self._limits.deadline_seconds
        pause = deadline / 10
        pause = min(max(pause, _WATCH_SECONDS_MIN), _WATCH_SECONDS_MAX)
        while True:
            await asyncio.sleep(pause)
            now = self._loop.time()
            for lane in self._lanes:
                delivery = lane.delivery
                if delivery is not lane.seen:
                    lane.seen, lane.since = delivery, now
                elif delivery and lane.task and now - lane.since > deadline + delivery.extended:
                    lane.cancels += 1
                    lane.task.cancel()

    async def _drain(self, places: set[Place]) -> None:
        """Start nothing new of these partitions, and wait a limited time for running handlers."""
        prefixes = set()
        for progress in (self.progress[place] for place in places if place in self.progress):
            progress.prefix.is_closed = True
            prefixes.add(id(progress.prefix))
        ends = self._loop.time() + self._limits.drain_seconds
        while self._loop.time() < ends:
            running = [one.delivery for one in self._lanes if one.delivery is not None]
            if not any(id(delivery.prefix) in prefixes for delivery in running):
                break
            await asyncio.sleep(_WATCH_SECONDS_MIN)

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Take newly assigned partitions; in the reader's thread."""
        taken = {(one.topic, one.partition): Progress() for one in partitions}
        if self.inherit is not None and taken:
            self.inherit(consumer, taken)

        def take() -> None:
            self.progress.update(taken)
            self._joined.set()

        self._loop.call_soon_threadsafe(take)

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Give partitions back once running handlers are done and committed; in the thread."""
        places = {(one.topic, one.partition) for one in partitions}

        async def give_back() -> None:
            await self._drain(places)
            await self.committer.flush()
            self._drop(places)

        if not self._is_stopping:
            giving = asyncio.run_coroutine_threadsafe(give_back(), self._loop)
            # If the loop is blocked, other members get the running messages a second time.
            self._reader.serve_until(giving, 2 * self._limits.drain_seconds)
        if self.forget is not None:
            self.forget(places)

    def _lose(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Drop partitions that another member already has; in the thread."""
        places = {(one.topic, one.partition) for one in partitions}
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._drop, places)
        if self.forget is not None:
            self.forget(places)

    def _drop(self, places: set[Place]) -> None:
        for place in places:
            progress = self.progress.pop(place, None)
            if progress is not None:
                progress.prefix.is_closed = True


def _take_back(lane: Lane) -> None:
    """Undo our own cancellations; those of others stay in force."""
    task, count = lane.task, lane.cancels
    lane.cancels = 0
    assert task is not None
    for _ in range(count):
        task.uncancel()
    if task.cancelling():
        raise asyncio.CancelledError
