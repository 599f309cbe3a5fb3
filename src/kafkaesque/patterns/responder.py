"""Responders: members of a group that answer requests."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from kafkaesque.clock import Clock, SystemClock
from kafkaesque.errors import PatternError
from kafkaesque.patterns.connection import Client
from kafkaesque.patterns.dead_letter import Failure, failure_of
from kafkaesque.patterns.delivery import NO_DEADLINE, Delivery, WrongType
from kafkaesque.patterns.engine import EngineSettings
from kafkaesque.patterns.envelope import Request, answer_headers, read_request
from kafkaesque.patterns.member import Member
from kafkaesque.patterns.message import Data
from kafkaesque.patterns.retry_plan import RetryPlan
from kafkaesque.patterns.sender import Sender

Answering: TypeAlias = Callable[[Delivery], Awaitable[Data]]

ANSWER_SECONDS_MAX = 5.0
"""An answer that cannot be written by then, for example because its topic is gone, is dropped."""


class Responder(Member):
    """Answers the requests of a topic with what its handler returns; `async with` it.

    A handler that raises or takes too long is answered with its error, and one that returns
    anything but bytes, text or None with WrongType. There are no retries: the requester decides.
    Messages that are not requests, and requests whose deadline has passed, are skipped.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        handler: Answering,
        *,
        group: str,
        name: str,
        limits: EngineSettings,
        clock: Clock,
    ) -> None:
        self.answered = 0
        self.passed_over = 0
        """Messages that were not requests, or were too late."""
        self.unanswered = 0
        """Requests whose answers could not be written."""
        self._topic = topic
        self._handler = handler
        self._name = name
        self._clock = clock
        sender = Sender(client, timeout_ms=int(ANSWER_SECONDS_MAX * 1000), is_idempotent=False)
        super().__init__(client, group, sender, limits=limits, plan=RetryPlan(delays_ms=()))

    def _read(self) -> list[str]:
        return [self._topic]

    async def _begin(self, delivery: Delivery) -> None:
        request = read_request(delivery.headers)
        if request is None or request.deadline_ms < self._clock.now_ms():
            self.passed_over += 1
            delivery.ack()
            return
        value = await self._handler(delivery)
        if not isinstance(value, bytes | str | None):
            kind = type(value).__qualname__
            raise WrongType(f"the handler returned {kind}, not bytes, text or None")
        delivery.extended = NO_DEADLINE  # it answered in time: the rest is ours
        await self._answer(request, value, None)

    async def _settle(self, delivery: Delivery, _: Any) -> None:
        """Answer with the error."""
        request = read_request(delivery.headers)
        if request is not None and delivery.failure is not None:
            await self._answer(request, None, delivery.failure)

    async def _answer(self, request: Request, value: Data, failure: Failure | None) -> None:
        headers = answer_headers(request, self._name, failure)
        try:
            await self._sender.send(
                request.reply_to, value, headers=headers, seconds_max=ANSWER_SECONDS_MAX
            )
        except TimeoutError:
            self.unanswered += 1
        except PatternError as error:
            self.unanswered += 1
            if failure is None and value is not None:
                # Perhaps too large: send at least the error.
                await self._answer(request, None, failure_of(error))
        else:
            self.answered += 1


def reply(
    client: Client,
    topic: str,
    handler: Answering,
    *,
    name: str | None = None,
    limits: EngineSettings | None = None,
    clock: Clock | None = None,
) -> Responder:
    """Return a responder: all without a name share a topic's requests, each named one gets all.

    Scattered requests address a responder by its name.
    """
    return Responder(
        client,
        topic,
        handler,
        group=topic if name is None else f"{topic}.{name}",
        name=topic if name is None else name,
        limits=limits or EngineSettings(),
        clock=clock or SystemClock(),
    )
