"""The cluster of a broker without others."""

from collections.abc import Callable
from typing import TypeVar

from kafkaesque.broker.cluster.calls import CallKind
from kafkaesque.broker.cluster.membership import Membership
from kafkaesque.broker.cluster.wall_clocks import ClockTold
from kafkaesque.broker.replication.leader_table import LeadersTold
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.types import GroupId, NodeId
from tests.broker.nodes import ALONE

Q = TypeVar("Q")
A = TypeVar("A")


class NoPeers:
    """The peers of a single broker: there are none."""

    def send(self, group: GroupId, message: Message) -> None:
        """There is no peer to send to."""
        raise AssertionError(f"a single broker has no peers for {group}: {message}")

    def is_sending(self, group: GroupId, target: NodeId) -> bool:
        """Nothing is ever sent."""
        return False

    def beat(self, beat: Beat) -> None:
        """There is no peer to hear it."""
        raise AssertionError(f"a single broker has no peers: {beat}")

    def tell(self, told: LeadersTold | ClockTold) -> None:
        """There is no peer to send to."""
        raise AssertionError(f"a single broker has no peers: {told}")

    def ask(
        self,
        target: NodeId,
        kind: CallKind[Q, A],
        question: Q,
        reply: Callable[[A | Refused | Unknown], None],
    ) -> None:
        """There is no peer to ask."""
        raise AssertionError(f"a single broker has no peers to ask: {question}")


MEMBERSHIP = Membership(
    peers=NoPeers(), voters=ALONE, host="localhost", port=9092, directory=bytes(16)
)
"""What makes node 1 the only broker of its cluster."""
