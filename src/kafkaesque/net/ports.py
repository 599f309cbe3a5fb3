"""What links tell the broker, and the questions of other brokers that it answers."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.net.codec import Failure, Reply
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.types import Buffer, GroupId, NodeId

Answer: TypeAlias = Callable[[Reply | Failure], None]


class Question:
    """A call of another broker; to be answered once, now or later."""

    __slots__ = ("_answer", "_number", "data", "is_answered", "kind", "node")

    def __init__(
        self, node: NodeId | None, kind: int, data: memoryview, number: int, answer: Answer
    ) -> None:
        self.node = node
        """Who asks; None is a visitor, which knows the secret but is no member yet."""
        self.kind = kind
        self.data = data
        self.is_answered = False
        self._number = number
        self._answer = answer

    def reply(self, data: Buffer) -> None:
        """Answer; lost if the link is lost."""
        self._send(Reply(number=self._number, data=data))

    def refuse(self, reason: str) -> None:
        """Answer that it was not done, in one sentence; the caller sees CallRefused."""
        self._send(Failure(number=self._number, reason=reason))

    def _send(self, item: Reply | Failure) -> None:
        assert not self.is_answered, "a question is answered once"
        self.is_answered = True
        self._answer(item)


def _ignore(*_: object) -> None:
    """Nobody wants to know."""


def _refuse(question: Question) -> None:
    question.refuse("this broker answers no calls")


def _admit(node: NodeId | None, directory: bytes) -> str | None:
    """Let every broker in that knows the secret."""


class LinkPorts(Struct, frozen=True, kw_only=True):
    """Where links hand over what came; each is called in the loop and must not wait."""

    deliver: Callable[[GroupId, Message], None]
    """A message for this node's replica of a group."""

    receive: Callable[[Beat], None]
    """Another node's beat."""

    on_question: Callable[[Question], None] = _refuse
    """Another broker's call."""

    on_note: Callable[[NodeId, int, memoryview], None] = _ignore
    """What another broker tells, and its kind."""

    on_received: Callable[[], None] = _ignore
    """Everything of one read has been handed over: the time to flush what was gathered."""

    on_suspect: Callable[[NodeId], None] = _ignore
    """The link was lost and the node's machine answers that nobody listens: it is gone."""

    admits: Callable[[NodeId | None, bytes], str | None] = _admit
    """Says in a sentence why a node with this directory may have no link, or None."""
