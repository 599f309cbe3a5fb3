"""What the catalog tells of the cluster: topics, the moves of their partitions, brokers."""

from collections.abc import Mapping

from msgspec import Struct, field

from kafkaesque.machines.placement import Replicas
from kafkaesque.types import NodeId

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""Machines live on these: clients may read them, and only we write to them."""


class Move(Struct, frozen=True, kw_only=True):
    """Where a partition is being moved to.

    A move that was called off leads back to where the partition was: it is over when the group has
    only those voters again, not before.
    """

    number: int
    """Which move of its topic it is, counted from 1; a later one takes an earlier one's place."""

    nodes: Replicas
    """The brokers that are to hold the partition, its preferred leader first."""

    leaving: Replicas = ()
    """The targets of moves that were given up: they may vote, so they hold it until it is over."""


class Topic(Struct, frozen=True, kw_only=True):
    """One topic of the cluster."""

    name: str
    topic_id: bytes
    replicas: tuple[Replicas, ...]
    """The brokers of each partition, its preferred leader first."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was set for it, as clients write it; the rest is as the defaults say."""
    moves: Mapping[int, Move] = field(default_factory=dict)
    """The partitions that are being moved."""
    moves_begun: int = 0
    """How many moves of its partitions were ever begun."""
    moved: frozenset[int] = frozenset()
    """The partitions that are not where they were born, or were elsewhere for a time."""

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return len(self.replicas)

    @property
    def is_internal(self) -> bool:
        """Whether a machine lives on it."""
        return self.name in INTERNAL_TOPICS

    @property
    def targets(self) -> Mapping[int, Replicas]:
        """Where the partitions that are being moved are to be."""
        return {index: move.nodes for index, move in self.moves.items()}

    def holders(self, index: int) -> Replicas:
        """Return all brokers that have a replica of a partition, those included that get one."""
        move = self.moves.get(index)
        if move is None:
            return self.replicas[index]
        return tuple(dict.fromkeys((*self.replicas[index], *move.nodes, *move.leaving)))

    def preferred(self, index: int) -> NodeId:
        """Return the broker that is to lead a partition if it can."""
        move = self.moves.get(index)
        return self.replicas[index][0] if move is None else move.nodes[0]

    def order(self, index: int) -> Replicas:
        """Return who is to lead a partition before whom."""
        nodes = self.replicas[index] if index not in self.moves else self.moves[index].nodes
        return tuple(dict.fromkeys((*nodes, *self.replicas[index])))

    def is_birthplace(self, index: int, node: NodeId) -> bool:
        """Return whether a broker that begins a replica now is one of those that first had it.

        Those may tell from the catalog who votes. Everybody else learns it from the leader.
        """
        return index not in self.moved and node in self.replicas[index]


class Registration(Struct, frozen=True, kw_only=True):
    """One broker of the cluster, as it last told of itself."""

    node: NodeId
    host: str
    port: int
    rack: str
    """Empty for nowhere in particular."""
    directory: bytes
    """The id of its data folder: a broker that lost its disk is another one."""
    incarnation: int
    """Another number means that it has started anew; 0 that it was never there yet."""
    is_draining: bool = False
    """Whether it is to be emptied: nothing new is put on it."""
    levels: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The lowest and highest level of each feature that it supports; empty if it does not say."""

    @property
    def was_there(self) -> bool:
        """Whether it has ever been one of the cluster: one that was only admitted may never be."""
        return self.incarnation > 0
