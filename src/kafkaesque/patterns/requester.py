"""Requests that wait for answers: from one responder, or from many."""

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kafkaesque.clock import Clock, SystemClock
from kafkaesque.errors import NoAnswer, PatternError, RequestFailed, TooManyInFlight, Undelivered
from kafkaesque.patterns.connection import Client, delete_topic, make_topics, settings
from kafkaesque.patterns.envelope import Answer, Request, read_answer, request_headers
from kafkaesque.patterns.gather import Gather, Gathered
from kafkaesque.patterns.message import Data, to_headers
from kafkaesque.patterns.opening import Opening
from kafkaesque.patterns.reader import Batch, Reader
from kafkaesque.patterns.sender import Sender, Sent
from kafkaesque.patterns.within import within

T = TypeVar("T")

DEADLINE_SECONDS = 10.0
ANSWERS_MAX = 10_000
"""Answers read and not yet handled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskerSettings:
    """Settings of one requesting client."""

    deadline_seconds: float = DEADLINE_SECONDS
    """Limit for entering, and for each request that names no other."""
    in_flight_max: int = 10_000
    """Requests without an answer; more are refused with TooManyInFlight."""
    reply_prefix: str = "replies"
    """Prefix of reply topics."""
    reply_retention_ms: int = 600_000
    """How long answers are kept, in case the client crashes and cannot delete its topic."""
    reply_settings: Mapping[str, str] = field(default_factory=dict)
    """Further settings of the reply topic, by Kafka's names."""


class Asker(Opening):
    """One client's reply topic and its requests in flight; `async with` it, in one event loop.

    The topic is created on entering and deleted on leaving. Late, duplicate and foreign answers are
    dropped and counted.
    """

    def __init__(
        self,
        client: Client,
        ask_settings: AskerSettings,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        self.dropped = 0
        self._client = client
        self._settings = ask_settings
        self._clock = clock
        name = f"{chance.getrandbits(64):016x}"
        self.reply_to = f"{ask_settings.reply_prefix}.{name}"
        self._numbers = 0
        self._waiting: dict[str, Callable[[Answer], None]] = {}
        self._sender = Sender(
            client, in_flight_max=ask_settings.in_flight_max, is_idempotent=False, is_silent=True
        )
        self._reader = Reader(
            settings(
                client,
                {"fetch.wait.max.ms": 500},
                {
                    "group.id": self.reply_to,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                },
            ),
            self._take,
            in_flight_max=ANSWERS_MAX,
        )

    async def _open(self, stack: AsyncExitStack) -> None:
        keep = {"retention.ms": str(self._settings.reply_retention_ms)}
        topics = {self.reply_to: {**keep, **self._settings.reply_settings}}
        await asyncio.to_thread(
            make_topics,
            self._client,
            topics,
            partitions=1,
            seconds_max=self._settings.deadline_seconds,
        )
        stack.push_async_callback(self._delete)
        await stack.enter_async_context(self._sender)
        await self._reader.start(self._assign)
        stack.push_async_callback(self._reader.stop)

    async def _delete(self) -> None:
        with suppress(PatternError):  # the topic stays, and its retention empties it
            await asyncio.to_thread(delete_topic, self._client, self.reply_to)

    def _assign(self, consumer: Consumer) -> None:
        consumer.assign([TopicPartition(self.reply_to, 0, 0)])

    def _take(self, batch: Batch) -> None:
        for raw in batch:
            answer = read_answer(to_headers(raw.headers()), raw.value())
            waiting = None if answer is None else self._waiting.get(answer.correlation)
            if answer is None or waiting is None:
                self.dropped += 1
            else:
                waiting(answer)
        self._reader.release(len(batch))

    async def _ask(
        self,
        topic: str,
        value: Data,
        key: Data,
        deadline_seconds: float,
        enough: "asyncio.Future[T]",
        take: Callable[[Answer], None],
    ) -> T:
        """Send a request and wait until `take`, which gets the answers, reports that it is enough.

        Raises TimeoutError at the deadline, Undelivered if no responder can have got it.
        """
        if len(self._waiting) >= self._settings.in_flight_max:
            raise TooManyInFlight(f"{len(self._waiting)} requests wait for their answers")
        self._numbers += 1
        correlation = f"{self.reply_to}/{self._numbers}"

        def report(error: KafkaError | None, _: Sent) -> None:
            if error is not None and not enough.done():
                enough.set_exception(Undelivered(f"a request to {topic}: {error.str()}"))

        deadline_ms = self._clock.now_ms() + int(deadline_seconds * 1000)
        asked = Request(reply_to=self.reply_to, correlation=correlation, deadline_ms=deadline_ms)
        self._waiting[correlation] = take
        try:
            headers = request_headers(asked)
            self._sender.post(topic, value, key=key, headers=headers, report=report)
            return await within(enough, deadline_seconds)
        finally:
            del self._waiting[correlation]


class Requester(Asker):
    """Asks one responder per request, many concurrently: `await ask("payments", b"…")`."""

    async def __call__(
        self,
        topic: str,
        value: Data,
        *,
        key: Data = None,
        deadline_seconds: float | None = None,
    ) -> bytes | None:
        """Send a request and return the first answer.

        Raises NoAnswer at the deadline, RequestFailed if the responder failed, Undelivered if the
        request could not be written, TooManyInFlight.
        """
        seconds = self._settings.deadline_seconds if deadline_seconds is None else deadline_seconds
        first: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def take(answer: Answer) -> None:
            if first.done():
                self.dropped += 1
            else:
                first.set_result(answer)

        try:
            answer = await self._ask(topic, value, key, seconds, first, take)
        except TimeoutError:
            raise NoAnswer(f"no answer from {topic} within {seconds:g} s") from None
        if isinstance(answer.value, RequestFailed):
            raise answer.value
        return answer.value


class Scatterer(Asker, Generic[T]):
    """Asks many workers the same and combines their answers with the user's function."""

    def __init__(
        self,
        client: Client,
        combine: Callable[[Mapping[str, bytes | None]], T],
        ask_settings: AskerSettings,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        super().__init__(client, ask_settings, clock, chance)
        self._combine = combine

    async def __call__(
        self,
        topic: str,
        value: Data,
        *,
        workers: Collection[str],
        enough: int | None = None,
        deadline_seconds: float | None = None,
    ) -> Gathered[T]:
        """Ask these workers; wait for all, for `enough` of them, or for the deadline.

        Missing answers are named in the result, not raised. Raises Undelivered if the request could
        not be written, TooManyInFlight, and what `combine` raises.
        """
        seconds = self._settings.deadline_seconds if deadline_seconds is None else deadline_seconds
        gather = Gather(workers, enough)

        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(answer: Answer) -> None:
            if not gather.take(answer.responder, answer.value):
                self.dropped += 1
            elif gather.is_done and not done.done():
                done.set_result(None)

        with suppress(TimeoutError):  # the answers so far are the result
            await self._ask(topic, value, None, seconds, done, take)
        return Gathered(
            value=self._combine(gather.answers),
            answers=gather.answers,
            failed=gather.failed,
            missing=gather.missing,
        )


def request(
    client: Client,
    *,
    settings: AskerSettings | None = None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
) -> Requester:
    """Return a requester of one responder: `async with request(client) as ask: await ask(…)`."""
    return Requester(
        client,
        settings or AskerSettings(),
        clock or SystemClock(),
        chance or random.SystemRandom(),
    )


def scatter(
    client: Client,
    combine: Callable[[Mapping[str, bytes | None]], T],
    *,
    settings: AskerSettings | None = None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
) -> Scatterer[T]:
    """Return a requester of many: each worker is a responder with its own name and group."""
    return Scatterer(
        client,
        combine,
        settings or AskerSettings(),
        clock or SystemClock(),
        chance or random.SystemRandom(),
    )
