"""Workers: a group shares a topic's messages; failures are retried, then put aside."""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, assert_never

from confluent_kafka import Consumer

from kafkaesque.clock import Clock, SystemClock
from kafkaesque.errors import PatternError
from kafkaesque.patterns.committer import Place, Progress
from kafkaesque.patterns.connection import Client, Ends
from kafkaesque.patterns.dead_letter import dead_headers, retry_headers, source_of
from kafkaesque.patterns.delivery import Delivery, Settled, WrongType
from kafkaesque.patterns.engine import EngineSettings, Handler
from kafkaesque.patterns.intents import INTENTS_MAX, Intent
from kafkaesque.patterns.member import Member
from kafkaesque.patterns.message import Message
from kafkaesque.patterns.recovery import find_copy, read_intents
from kafkaesque.patterns.retry_pause import Holding
from kafkaesque.patterns.retry_plan import Names, RetryPlan
from kafkaesque.patterns.sender import Sender
from kafkaesque.types import Offset

DEAD_LETTER_TIER = 0
_DAY_MS = 24 * 3600 * 1000
_AGAIN_SECONDS = 0.5


class WorkerDied(PatternError):
    """An attempt failed, and its worker crashed before it could record the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of a worker."""

    retries: RetryPlan = field(default_factory=RetryPlan)
    limits: EngineSettings = field(default_factory=EngineSettings)
    dead_letter_retention_ms: int = 14 * _DAY_MS
    """How long dead letters are kept; used when the dead-letter topic is created."""


class Worker(Member):
    """A member of a group that works on a topic; `async with` it, in one event loop.

    A message is done when its handler returns. A message whose handler fails goes to the next retry
    topic, and after the last one to the dead-letter topic; only then is its offset committed.
    Messages of one key are handled in order, except for those that wait in a retry topic.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        handler: Handler,
        *,
        group: str,
        settings: WorkerSettings,
        clock: Clock,
    ) -> None:
        self.names = Names(topic=topic, group=group, tiers=len(settings.retries.delays_ms))
        self.retried = 0
        self.dead = 0
        self._handler = handler
        self._group = group
        self._settings = settings
        self._clock = clock
        self._inherited: dict[tuple[str, int, Offset], tuple[Intent, bool]] = {}
        super().__init__(
            client, group, Sender(client), limits=settings.limits, plan=settings.retries
        )
        self._engine.inherit = self._inherit
        if self.names.retries:
            holding = Holding(self.names.retries, clock.now_ms)
            self._engine.sift, self._engine.tick = holding.sift, holding.tick
            self._engine.forget = holding.forget

    async def _open(self, stack: AsyncExitStack) -> None:
        self._ends = Ends(self._client)
        await super()._open(stack)

    def _read(self) -> list[str]:
        return [self.names.topic, *self.names.retries]

    def _topics(self) -> dict[str, dict[str, str]]:
        keep = {"retention.ms": str(self._settings.dead_letter_retention_ms)}
        return {**super()._topics(), self.names.dead_letter: keep}

    @property
    def done(self) -> int:
        """Messages done so far, including those retried or put aside."""
        return self._engine.done

    def _begin(self, delivery: Delivery) -> Awaitable[Any]:
        if self._inherited:
            message = delivery.message
            place = (message.topic, message.partition, message.offset)
            if place in self._inherited:
                return self._finish_inherited(delivery, is_moved=self._inherited[place][1])
        return self._handler(delivery)

    async def _finish_inherited(self, delivery: Delivery, *, is_moved: bool) -> None:
        """Finish a failure that another worker started; the handler is not called again."""
        if is_moved:
            delivery.ack()
        else:
            delivery.nack(WorkerDied("its worker crashed before it could record the reason"))

    async def _settle(self, delivery: Delivery, result: Any) -> None:
        """Move a failed message to its retry or dead-letter topic."""
        if delivery.settled is Settled.NOT_YET:
            kind = type(result).__qualname__
            delivery.nack(WrongType(f"the handler returned {kind}, not None"), retry=False)
        match delivery.settled:
            case Settled.ACKED | Settled.NOT_YET:
                return
            case Settled.RETRY:
                tier = self._settings.retries.next_tier(delivery.attempt)
            case Settled.DEAD:
                tier = None
            case _:
                assert_never(delivery.settled)
        await self._move(delivery, tier or DEAD_LETTER_TIER)

    async def _move(self, delivery: Delivery, tier: int) -> None:
        """Copy a message to another topic, once; returns when it is there, or is not ours."""
        message = delivery.message
        place = (message.topic, message.partition)
        inherited = self._inherited.get((*place, message.offset))
        if inherited is not None:
            tier = inherited[0].tier
        topic = self._topic_of(tier)
        is_begun = False
        while True:  # ends with the copy, the loss of the partition, or the worker's stop
            progress = self._engine.progress.get(place)
            if progress is None or progress.prefix is not delivery.prefix:
                return
            intent = progress.intents.get(message.offset)
            try:
                # Before every attempt but the first: a failed one may have left a copy, and while
                # that is unknown no other may be made.
                if is_begun and intent is not None and await self._is_there(topic, intent, message):
                    self._count(topic)
                    return
                is_begun = True
                if await self._intend(progress, message, tier, topic):
                    if (
                        self._engine.progress.get(place) is progress
                    ):  # otherwise its new owner copies it
                        partition = progress.intents[message.offset].partition
                        await self._copy(delivery, tier, topic, partition)
                        self._count(topic)
                    return
            except PatternError:
                pass  # no broker, or a rebalance: retrying loses nothing
            await asyncio.sleep(_AGAIN_SECONDS)

    def _topic_of(self, tier: int) -> str:
        known = self.names.retries
        # A tier of a plan with more delays than ours: use our last one.
        return known[min(tier, len(known)) - 1] if tier and known else self.names.dead_letter

    async def _intend(self, progress: Progress, message: Message, tier: int, topic: str) -> bool:
        """Commit the intent for a message; False means try again."""
        source, offset = message.partition, message.offset
        if offset not in progress.intents:
            # Chosen by the source's partition, so that copies of one key keep their order.
            partition = source % self._partitions[topic]
            end = (await asyncio.to_thread(self._ends.ask, topic, [partition]))[partition]
            if len(progress.intents) >= INTENTS_MAX:
                return False
            progress.intents[offset] = Intent(tier=tier, partition=partition, start=end)
        return await self._engine.committer.flush()

    async def _copy(self, delivery: Delivery, tier: int, topic: str, partition: int) -> None:
        message, failure, attempt = delivery.message, delivery.failure, delivery.attempt
        assert failure is not None
        now_ms = self._clock.now_ms()
        if topic == self.names.dead_letter:
            headers = dead_headers(
                message, failure, attempts=attempt, group=self._group, now_ms=now_ms
            )
        else:
            delays = self._settings.retries.delays_ms
            due = now_ms + delays[min(tier, len(delays)) - 1]
            headers = retry_headers(message, failure, attempt=attempt + 1, due=due)
        await self._sender.send(
            topic, message.value, key=message.key, headers=headers, partition=partition
        )

    def _count(self, topic: str) -> None:
        if topic == self.names.dead_letter:
            self.dead += 1
        else:
            self.retried += 1

    async def _is_there(self, topic: str, intent: Intent, message: Message) -> bool:
        source = source_of(message)
        return await asyncio.to_thread(find_copy, self._client, self._ends, topic, intent, source)

    def _inherit(self, consumer: Consumer, taken: dict[Place, Progress]) -> None:
        """Read the intents of former owners; in the reader's thread."""
        kept = {place: one for place, one in self._inherited.items() if place[:2] not in taken}
        self._inherited = kept
        for (topic, partition, offset), intent in read_intents(consumer, taken).items():
            target = self._topic_of(intent.tier)
            source = f"{topic}/{partition}/{offset}"
            is_moved = find_copy(self._client, self._ends, target, intent, source)
            taken[topic, partition].intents[offset] = intent
            self._inherited[topic, partition, offset] = (intent, is_moved)


def worker(
    client: Client,
    topic: str,
    handler: Handler,
    *,
    group: str | None = None,
    settings: WorkerSettings | None = None,
    clock: Clock | None = None,
) -> Worker:
    """Return a worker; those without a group share the topic as a point-to-point queue."""
    return Worker(
        client,
        topic,
        handler,
        group=topic if group is None else group,
        settings=settings or WorkerSettings(),
        clock=clock or SystemClock(),
    )
