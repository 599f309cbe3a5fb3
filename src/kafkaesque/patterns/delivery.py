"""One message while a handler works on it, and the ways to settle it."""

from enum import Enum, auto
from typing import TYPE_CHECKING

from kafkaesque.errors import PatternError
from kafkaesque.patterns.dead_letter import Failure, failure_of
from kafkaesque.patterns.message import Headers, Message, from_client, to_headers
from kafkaesque.patterns.prefix import DonePrefix
from kafkaesque.patterns.retry_plan import RetryPlan
from kafkaesque.types import Offset

if TYPE_CHECKING:
    from confluent_kafka import Message as ClientMessage

NO_DEADLINE = float("inf")


class Settled(Enum):
    """What was decided about a message."""

    NOT_YET = auto()
    ACKED = auto()
    RETRY = auto()
    DEAD = auto()


class HandlerTooSlow(PatternError):
    """A handler did not finish by its deadline and was cancelled."""


class WrongType(PatternError):
    """A handler returned a value of a wrong type."""


class Nacked(PatternError):
    """A handler nacked a message without an error."""


class Delivery:
    """A message for a handler; it is done when the handler returns, unless settled earlier.

    Its fields are read from the client's message on access.
    """

    __slots__ = ("_plan", "_raw", "extended", "failure", "offset", "prefix", "settled")

    def __init__(
        self, raw: "ClientMessage", offset: Offset, plan: RetryPlan, prefix: DonePrefix
    ) -> None:
        self._raw = raw
        self.offset = offset
        """The message's offset in its partition."""
        self._plan = plan
        self.prefix = prefix
        self.extended = 0.0
        """Seconds that its handler may run beyond the common deadline."""
        self.settled = Settled.NOT_YET
        self.failure: Failure | None = None

    @property
    def key(self) -> bytes | None:
        """The message's key."""
        return self._raw.key()

    @property
    def value(self) -> bytes | None:
        """The message's value."""
        return self._raw.value()

    @property
    def text(self) -> str:
        """The value as text; invalid bytes are replaced."""
        return (self._raw.value() or b"").decode(errors="replace")

    @property
    def headers(self) -> Headers:
        """The message's headers, including ours."""
        return to_headers(self._raw.headers())

    @property
    def message(self) -> Message:
        """The whole message as a value."""
        return from_client(self._raw)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1. A redelivery after a crash repeats it."""
        return self._plan.attempt_of(self.headers)

    def ack(self) -> None:
        """Settle the message as done, even if the handler then fails or hangs."""
        if self.settled is Settled.NOT_YET:
            self.settled = Settled.ACKED

    def nack(self, reason: str | BaseException, *, retry: bool = True) -> None:
        """Fail this attempt; without `retry` the message becomes a dead letter at once."""
        if self.settled is Settled.NOT_YET:
            error = reason if isinstance(reason, BaseException) else Nacked(reason)
            self.failure = failure_of(error)
            self.settled = Settled.RETRY if retry else Settled.DEAD

    def extend(self, seconds: float) -> None:
        """Give the handler this many seconds beyond its deadline."""
        self.extended += seconds
