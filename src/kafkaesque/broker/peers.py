"""What a broker needs of the others: small synchronous ports, whoever carries the bytes."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kafkaesque.broker.copies import CopyAsked, CopyWord
from kafkaesque.broker.leaders import LeadersTold
from kafkaesque.broker.ranges import RangeAsked, Told
from kafkaesque.broker.wall_clocks import ClockTold
from kafkaesque.machines.catalog_commands import Command, Reply
from kafkaesque.machines.transaction_questions import Answer, Question
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.types import GroupId, NodeId

__all__ = ["AnswerTo", "Beat", "Message", "NoPeers", "Peers", "ReplyTo"]

ReplyTo: TypeAlias = Callable[[Reply], None]
"""Told once what became of a command."""

RangeTo: TypeAlias = Callable[[Told], None]
"""Told once what another broker gives of its log."""

CopyTo: TypeAlias = Callable[[CopyWord], None]
"""Told once how another broker's copy of a log is."""

AnswerTo: TypeAlias = Callable[[Answer], None]
"""Told once what another broker says to a question about transactions."""


class Peers(Protocol):
    """The other brokers. Nothing here waits; what is sent may be lost, late, or out of order."""

    def send(self, group: GroupId, message: Message) -> None:
        """Take a message of a group to its target, whose `Broker.deliver` gets it."""
        ...

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Return whether an append of a group, or a piece of its state, still waits to be sent."""
        ...

    def beat(self, beat: Beat) -> None:
        """Take a beat to its target, whose `Broker.receive_beat` gets it."""
        ...

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """Take word of leaders or of the time to its target.

        There `Broker.receive_leaders` or `Broker.clocks` gets it.
        """
        ...

    def ask(self, target: NodeId, command: Command, reply: ReplyTo) -> None:
        """Take a command to a broker's `carry_out`, at most once, and the reply back.

        `reply` is told exactly once, not before this returns, and within a time that the carrier
        sets: `Refused` if the command surely was not delivered, `Unknown` if it may have been.
        """
        ...

    def consult(self, target: NodeId, question: Question, answer: AnswerTo) -> None:
        """Take a question about transactions to a broker's `consult`, as `ask` takes commands."""
        ...

    def ask_range(self, target: NodeId, asked: RangeAsked, told: RangeTo) -> None:
        """Ask a broker's `give_range` for some of a log, as `ask` takes commands."""
        ...

    def ask_copy(self, target: NodeId, asked: CopyAsked, told: CopyTo) -> None:
        """Ask a broker's `tell_copy` how its copy of a log is, as `ask` takes commands."""
        ...


class NoPeers:
    """A broker that is alone."""

    def send(self, group: GroupId, message: Message) -> None:
        """Nobody is there to send to."""
        raise AssertionError(f"a single broker has no peers for {group}: {message}")

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Nothing is ever sent."""
        return False

    def beat(self, beat: Beat) -> None:
        """Nobody is there to hear it."""
        raise AssertionError(f"a single broker has no peers: {beat}")

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """Nobody is there to be told."""
        raise AssertionError(f"a single broker has no peers: {told}")

    def ask(self, target: NodeId, command: Command, reply: ReplyTo) -> None:
        """Nobody is there to be asked."""
        raise AssertionError(f"a single broker has no peers to ask: {command}")

    def consult(self, target: NodeId, question: Question, answer: AnswerTo) -> None:
        """Nobody is there to be asked."""
        raise AssertionError(f"a single broker has no peers to ask: {question}")

    def ask_range(self, target: NodeId, asked: RangeAsked, told: RangeTo) -> None:
        """Nobody is there to be asked."""
        raise AssertionError(f"a single broker has no peers to ask: {asked}")

    def ask_copy(self, target: NodeId, asked: CopyAsked, told: CopyTo) -> None:
        """Nobody is there to be asked."""
        raise AssertionError(f"a single broker has no peers to ask: {asked}")
