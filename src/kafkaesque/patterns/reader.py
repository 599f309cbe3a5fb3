"""confluent-kafka's consumer for event loops: a thread polls, and batches go to the loop."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaException

from kafkaesque.errors import PatternError
from kafkaesque.patterns.connection import CONSUME_BATCH_MAX

if TYPE_CHECKING:
    from confluent_kafka import Message as ClientMessage

Batch: TypeAlias = "list[ClientMessage]"
T = TypeVar("T")

_POLL_SECONDS = 0.02
"""Calls from the loop wait at most this long while nothing arrives."""
_FLOW_SECONDS = 0.0003
"""When two messages arrive this close together, more are probably there."""
_FULL_SECONDS = 0.5
"""A reader without room waits this long before it pauses its partitions, which is costly."""


class Reader:
    """A consumer and its thread.

    `take` gets batches in the loop, which must call `release` when messages are done: at most
    `in_flight_max` and one batch are ever out. Without room the consumer is still polled, so that
    its group does not time it out. `sift` and `tick` run in the thread, with each batch and after
    each poll.
    """

    def __init__(
        self,
        consumer_settings: Any,
        take: Callable[[Batch], None],
        *,
        in_flight_max: int,
        sift: Callable[[Consumer, Batch], Batch] | None = None,
        tick: Callable[[Consumer], Batch] | None = None,
    ) -> None:
        self._settings = consumer_settings
        self._take = take
        self._in_flight_max = in_flight_max
        self._sift = sift
        self._tick = tick
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._room = threading.Event()
        self._is_flowing = False
        self._came = 0.0
        self._given = 0
        self._released = 0
        self._is_stopping = False
        self._is_over = False
        self.failure: asyncio.Future[None]
        """Done with the error that ended the reading, if any."""

    async def start(self, begin: Callable[[Consumer], None]) -> None:
        """Create the consumer, let `begin` subscribe or assign, and read."""
        self._loop = asyncio.get_running_loop()
        self.failure = self._loop.create_future()
        self.consumer = Consumer(self._settings)
        try:
            await asyncio.to_thread(begin, self.consumer)
        except Exception:
            # Not when cancelled: `begin` may still run, and an unreferenced consumer is closed.
            self.consumer.close()
            raise
        self._thread = threading.Thread(target=self._run, name="kafkaesque-reader", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop reading, leave the group and close the consumer."""
        self._is_stopping = True
        self._room.set()
        await asyncio.to_thread(self._thread.join)
        if not self.failure.done():
            self.failure.cancel()
        elif not self.failure.cancelled():
            self.failure.exception()  # retrieved, so that asyncio does not complain

    async def call(self, function: Callable[[Consumer], T]) -> T:
        """Run a function in the thread, between two polls, and return its result."""
        done: Future[T] = Future()

        def run() -> None:
            if not done.set_running_or_notify_cancel():
                return  # cancelled
            if self._is_over:
                done.set_exception(PatternError("reading has ended"))
                return
            try:
                done.set_result(function(self.consumer))
            except Exception as error:  # noqa: BLE001 - a callback may raise anything
                done.set_exception(_told(error))

        self._calls.put(run)
        if self._is_over:
            self._serve()
        return await asyncio.wrap_future(done)

    async def wait(self, event: asyncio.Event, seconds: float | None = None) -> None:
        """Return when the event is set, reading has failed, or the time has passed."""
        coming: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
        watched: list[asyncio.Future[Any]] = [coming, self.failure]
        try:
            await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            coming.cancel()

    def release(self, count: int) -> None:
        """Note that this many messages are done; called in the loop."""
        self._released += count
        if not self._room.is_set() and self._has_room:
            self._room.set()

    @property
    def _has_room(self) -> bool:
        # Each of the two numbers is written by one thread, so neither needs a lock.
        return self._given - self._released < self._in_flight_max

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._turn()
        except Exception as error:  # noqa: BLE001 - a callback may raise anything
            self._tell(self._fail, _told(error))
        finally:
            with suppress(Exception):  # nothing can be done about it
                self.consumer.close()
            self._is_over = True
            self._serve()

    def serve_until(self, done: "Future[Any]", seconds: float) -> None:
        """In the thread, within a callback of the client: run the loop's calls meanwhile."""
        ends = time.monotonic() + seconds
        while not done.done() and time.monotonic() < ends:
            with suppress(queue.Empty):
                self._calls.get(timeout=_POLL_SECONDS)()

    def _serve(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._calls.get_nowait()()

    def _turn(self) -> None:
        # `_give` wakes the loop, which then needs the interpreter lock: do little until the next
        # poll, which releases it.
        if not self._calls.empty():
            self._serve()
        if not self._has_room:
            self._wait_for_room()
        batch = self._poll(_POLL_SECONDS)
        if batch and self._sift is not None:
            batch = self._sift(self.consumer, batch)
        self._give(batch)
        if self._tick is not None:
            self._give(self._tick(self.consumer))

    def _poll(self, seconds: float) -> Batch:
        batch = self._ask(seconds)
        if len(batch) == 1 and batch[0].error() is None:
            return batch
        failed = [one for one in batch if one.error() is not None]
        for one in failed:
            error = one.error()
            if error is not None and error.fatal():
                raise KafkaException(error)
        return [one for one in batch if one.error() is None] if failed else batch

    def _ask(self, seconds: float) -> Batch:
        # `consume` waits until it has the full number, so ask only for what is already there. Each
        # call releases the interpreter lock, and gets it back late from a busy loop: under load one
        # call takes all, and otherwise there is one call per message.
        if self._is_flowing:
            batch = self.consumer.consume(CONSUME_BATCH_MAX, 0)
            if batch:
                return batch
        first = self.consumer.poll(seconds)
        if first is None:
            self._is_flowing = False
            return []
        last, self._came = self._came, time.monotonic()
        self._is_flowing = self._came - last < _FLOW_SECONDS
        return [first]  # often the only one: pass it on at once

    def _wait_for_room(self) -> None:
        self._room.clear()
        if self._has_room or self._room.wait(_FULL_SECONDS):
            return
        while not self._has_room and not self._is_stopping:
            # Partitions assigned meanwhile are not paused: their messages are passed on too.
            self.consumer.pause(self.consumer.assignment())
            self._give(self._poll(_POLL_SECONDS))
        self.consumer.resume(self.consumer.assignment())

    def _give(self, batch: Batch) -> None:
        if batch:
            self._given += len(batch)
            self._tell(self._take, batch)

    def _tell(self, function: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, value)

    def _fail(self, error: PatternError) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)


def _told(error: Exception) -> PatternError:
    """Return the error to raise for one of librdkafka's, or for one of a callback."""
    if isinstance(error, PatternError):
        return error
    if isinstance(error, KafkaException):
        return PatternError(error.args[0].str())
    told = PatternError(f"reading failed: {type(error).__name__}: {error}")
    told.__cause__ = error
    return told
