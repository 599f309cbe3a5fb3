"""What a broker needs of the others: small synchronous ports, whatever the transport."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from kafkaesque.broker.cluster.calls import CallKind
from kafkaesque.broker.cluster.wall_clocks import ClockTold
from kafkaesque.broker.replication.leader_table import LeadersTold
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.types import GroupId, NodeId

__all__ = ["Beat", "Message", "Peers"]

Q = TypeVar("Q")
A = TypeVar("A")


class Peers(Protocol):
    """The other brokers. Nothing here blocks; messages may be lost, late, or out of order."""

    def send(self, group: GroupId, message: Message) -> None:
        """Send a group's message to its target, whose `Broker.deliver` gets it."""
        ...

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Return whether a group's append, or a piece of its state, still waits to be sent."""
        ...

    def beat(self, beat: Beat) -> None:
        """Send a beat to its target, whose `Broker.receive_beat` gets it."""
        ...

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """Send a message about leaders or the time to its target.

        There `Broker.receive_leaders` or `Broker.clocks` gets it.
        """
        ...

    def ask(
        self,
        target: NodeId,
        kind: CallKind[Q, A],
        question: Q,
        reply: Callable[[A | Refused | Unknown], None],
    ) -> None:
        """Send a question to a broker's `answer`, at most once, and return its reply.

        `reply` is called exactly once, not before this returns, and within a time that the carrier
        sets: `Refused` if the question was surely not delivered, `Unknown` if it may have been.
        """
        ...
