"""What machines that answer requests have in common: commands come in, decisions come out.

A command comes with `Now`; deciding on it gives a `Decision`: records to write, and answers to give
once everything known at the time of the decision is committed. An answer may belong to a much
earlier command: a join waits until the whole group has joined.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from kafkaesque.ages import Ages
from kafkaesque.machines.machine import Machine, MachineRecord

A_co = TypeVar("A_co", covariant=True)


class Command(Struct, Generic[A_co], frozen=True, kw_only=True):
    """A request to a machine; the type parameter is the answer unless it is refused."""


ReplyTo: TypeAlias = Callable[[Any], None]
"""Takes an answer or an error; a machine may keep it and return it, but never calls it."""


class Now(NamedTuple):
    """Both clocks at one moment: one for timeouts, one for times shown to users."""

    monotonic_ms: int
    wall_ms: int
    ages: Ages | None = None
    """How old things are; None while the wall clock is in doubt: then nothing expires."""


class Reply(NamedTuple):
    """An answer and its recipient."""

    to: ReplyTo
    answer: object


class Decision(Struct):
    """The outcome of a command: records first, answers once they are committed."""

    records: list[MachineRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    is_one_batch: bool = False
    """Whether the records apply all or none; else each stands on its own."""

    def reply(self, to: ReplyTo, answer: object) -> None:
        """Add an answer."""
        self.replies.append(Reply(to, answer))


class Decider(Machine, Protocol):
    """A machine that a coordinator can host: it decides on commands and on time passing."""

    def decide(self, command: Any, to: ReplyTo, now: Now) -> Decision:
        """Decide on a command; a raised error is an answer, too."""
        ...

    def tick(self, now: Now) -> Decision:
        """Handle what is due by now."""
        ...

    def expire(self, now: Now) -> Decision:
        """Expire what has long been unused."""
        ...

    def forget_topic(self, topic_id: bytes) -> Decision:
        """Forget a topic that was deleted."""
        ...

    def waiting(self) -> Iterable[ReplyTo]:
        """Return the recipients of answers that are still undecided."""
        ...
