"""The callbacks of links to the broker, and calls of other brokers that it answers."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.callbacks import ignore
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
        """The calling node; None for a visitor, which knows the secret but is not a member yet."""
        self.kind = kind
        self.data = data
        self.is_answered = False
        self._number = number
        self._answer = answer

    def reply(self, data: Buffer) -> None:
        """Reply; lost if the link is lost."""
        self._send(Reply(number=self._number, data=data))

    def refuse(self, reason: str) -> None:
        """Refuse the call with a one-sentence reason; the caller gets CallRefused."""
        self._send(Failure(number=self._number, reason=reason))

    def _send(self, item: Reply | Failure) -> None:
        assert not self.is_answered, "a question is answered once"
        self.is_answered = True
        self._answer(item)


def _refuse(question: Question) -> None:
    question.refuse("this broker answers no calls")


def _admit(node: NodeId | None, directory: bytes) -> str | None:
    """Admit every broker that knows the secret."""


class LinkPorts(Struct, frozen=True, kw_only=True):
    """Where links deliver what they receive; each is called in the loop and must not block."""

    deliver: Callable[[GroupId, Message], None]
    """A message for this node's replica of a group."""

    receive: Callable[[Beat], None]
    """Another node's beat."""

    on_question: Callable[[Question], None] = _refuse
    """Another broker's call."""

    on_note: Callable[[NodeId, int, memoryview], None] = ignore
    """A one-way message of another broker, with its kind."""

    on_received: Callable[[], None] = ignore
    """Everything from one read has been delivered: time to flush."""

    on_suspect: Callable[[NodeId], None] = ignore
    """The link was lost and the node's machine refuses connections: the process is gone."""

    admits: Callable[[NodeId | None, bytes], str | None] = _admit
    """Returns the reason why a node with this directory may not link, or None."""
