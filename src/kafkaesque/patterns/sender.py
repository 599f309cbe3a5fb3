"""confluent-kafka's producer for event loops: a thread polls, and reports go to the loop."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer

from kafkaesque.errors import TooManyInFlight, Undelivered
from kafkaesque.patterns.connection import Client, settings
from kafkaesque.patterns.message import Data, Headers, to_bytes
from kafkaesque.patterns.within import within
from kafkaesque.types import Offset

IN_FLIGHT_MAX = 10_000
"""Messages sent and not acknowledged; also the most that librdkafka's queue holds."""
QUEUE_KIB_MAX = 64 << 10
TIMEOUT_MS = 30_000
_POLL_SECONDS = 0.1
_SILENT_SECONDS = 0.05
"""How late a silent sender may report failures."""
_FULL_SECONDS = 0.01


class Sent(NamedTuple):
    """Where a message was written."""

    partition: int
    offset: Offset


Report: TypeAlias = Callable[[KafkaError | None, Sent], None]
_NOWHERE = Sent(-1, -1)


class Sender:
    """Sends messages, each acknowledged by all replicas that must have it.

    An idempotent one writes no duplicates and keeps the order, but librdkafka takes up to a second
    before its first message. A silent one is only for `post`, and reports only failures.

    `async with` it, in one event loop. Leaving waits until every message is acknowledged or given
    up.
    """

    def __init__(
        self,
        client: Client,
        *,
        in_flight_max: int = IN_FLIGHT_MAX,
        timeout_ms: int = TIMEOUT_MS,
        is_idempotent: bool = True,
        is_silent: bool = False,
    ) -> None:
        self._settings = settings(
            client,
            {
                "linger.ms": 0,
                "message.timeout.ms": timeout_ms,
                "enable.idempotence": is_idempotent,
                # Like Kafka's own clients, so that a key has one partition for all senders.
                "partitioner": "murmur2_random",
            },
            {
                "acks": "all",
                "delivery.report.only.error": is_silent,
                "queue.buffering.max.messages": in_flight_max + 1,
                "queue.buffering.max.kbytes": QUEUE_KIB_MAX,
            },
        )
        self._timeout_seconds = timeout_ms / 1000
        self._in_flight_max = in_flight_max
        self._is_silent = is_silent
        self._reports: deque[tuple[Report, KafkaError | None, Sent]] = deque()
        self._in_flight = 0
        self._is_woken = False
        self._stopping = threading.Event()

    async def __aenter__(self) -> "Sender":
        self._loop = asyncio.get_running_loop()
        self._freed = asyncio.Event()
        self._producer = Producer(self._settings)
        self._thread = threading.Thread(target=self._poll, name="kafkaesque-sender", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await asyncio.to_thread(self._flush)
        finally:
            self._stopping.set()
            await asyncio.to_thread(self._thread.join)

    async def send(
        self,
        topic: str,
        value: Data,
        *,
        key: Data = None,
        headers: Headers = (),
        partition: int | None = None,
        seconds_max: float | None = None,
    ) -> Sent:
        """Send one message and return its position once it is acknowledged; raises Undelivered.

        Waits while too much is in flight. To send many, await them together. Raises TimeoutError
        after `seconds_max` without room, or then as long without a report of the message.
        """
        sent: asyncio.Future[Sent] = self._loop.create_future()

        def report(error: KafkaError | None, place: Sent) -> None:
            if sent.done():
                return
            if error is None:
                sent.set_result(place)
            else:
                sent.set_exception(Undelivered(f"a message to {topic}: {error.str()}"))

        ends = self._loop.time() + self._timeout_seconds
        while True:  # ends: queued messages are sent or time out
            while self._in_flight >= self._in_flight_max:  # ends: each is sent or times out
                self._freed.clear()
                async with asyncio.timeout(seconds_max):
                    await self._freed.wait()
            try:
                self._produce(topic, value, key, headers, partition, report)
            except BufferError:
                if self._loop.time() > ends:
                    raise Undelivered(f"a message to {topic}: the queue is still full") from None
                await asyncio.sleep(_FULL_SECONDS)
            else:
                return await (sent if seconds_max is None else within(sent, seconds_max))

    def post(self, topic: str, value: Data, *, key: Data, headers: Headers, report: Report) -> None:
        """Send one message without waiting; raises TooManyInFlight. `report` is called later."""
        if self._in_flight >= self._in_flight_max:
            raise TooManyInFlight(f"{self._in_flight_max} messages are in flight")
        try:
            try:
                self._produce(topic, value, key, headers, None, report)
            except BufferError:
                # Messages occupy the queue until their report is served.
                self._served(self._producer.poll, 0)
                self._produce(topic, value, key, headers, None, report)
        except BufferError:
            raise TooManyInFlight(f"{QUEUE_KIB_MAX} KiB are in flight") from None

    def _produce(
        self,
        topic: str,
        value: Data,
        key: Data,
        headers: Headers,
        partition: int | None,
        report: Report,
    ) -> None:
        optional: dict[str, Any] = {} if partition is None else {"partition": partition}
        try:
            self._producer.produce(
                topic,
                to_bytes(value),
                to_bytes(key),
                headers=list(headers),
                on_delivery=partial(self._delivered, report),
                **optional,
            )
        except KafkaException as error:  # it cannot even be queued: too large, for instance
            report(error.args[0], _NOWHERE)
        else:
            # Count it only once librdkafka has it, and so will report it whatever else happens.
            self._in_flight += not self._is_silent  # librdkafka's queue is the limit then

    def _delivered(self, report: Report, error: KafkaError | None, raw: Any) -> None:
        place = _NOWHERE if error else Sent(raw.partition(), raw.offset())
        self._reports.append((report, error, place))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._pass_on)

    def _pass_on(self) -> None:
        """Pass on all reports that came in one poll."""
        self._is_woken = False
        while self._reports:
            report, error, place = self._reports.popleft()
            self._in_flight -= not self._is_silent
            report(error, place)
        self._freed.set()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            if not self._is_silent:
                self._served(self._producer.poll, _POLL_SECONDS)
            elif not self._stopping.wait(_SILENT_SECONDS):
                # confluent-kafka drops unwanted reports only when polled, and each would wake a
                # thread that has nothing else to do.
                self._served(self._producer.poll, 0)

    def _flush(self) -> None:
        ends = time.monotonic() + 2 * self._timeout_seconds
        while (left := ends - time.monotonic()) > 0:
            if self._served(self._producer.flush, left):
                return  # all is reported, or the time is up

    def _served(self, serve: Callable[[float], object], seconds: float) -> bool:
        """Let the client run callbacks for this long; return whether none failed."""
        try:
            serve(seconds)
        except Exception as error:  # noqa: BLE001 - a callback may raise anything
            # Others wait for their reports, so continue: what cannot be sent times out.
            told = {"message": "a callback of the client failed", "exception": error}
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._loop.call_exception_handler, told)
            return False
        return True
