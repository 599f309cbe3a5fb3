"""The catalog's view of the cluster: topics, the moves of their partitions, brokers."""

from collections.abc import Mapping

from msgspec import Struct, field

from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.types import NodeId

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})
"""Topics that hold machines' state: clients may read them, only brokers write to them."""


class Move(Struct, frozen=True, kw_only=True):
    """The destination of a partition that is being moved.

    A move that was called off leads back to where the partition was, and ends only when the group
    has just those voters again.
    """

    number: int
    """The number of the move within its topic, from 1; a later one replaces an earlier one."""

    nodes: Replicas
    """The brokers that will hold the partition, its preferred leader first."""

    leaving: Replicas = ()
    """Targets of abandoned moves: they may vote, so they hold the partition until the move ends."""


class Topic(Struct, frozen=True, kw_only=True):
    """One topic of the cluster."""

    name: str
    topic_id: bytes
    replicas: tuple[Replicas, ...]
    """The brokers of each partition, the preferred leader first."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings made for it, as clients write them; the defaults cover the rest."""
    moves: Mapping[int, Move] = field(default_factory=dict)
    """The partitions that are being moved."""
    moves_begun: int = 0
    """How many moves of its partitions were ever started."""
    moved: frozenset[int] = frozenset()
    """Partitions that have left their original brokers, even if they came back."""

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.replicas)

    @property
    def is_internal(self) -> bool:
        """Whether it holds a machine's state."""
        return self.name in INTERNAL_TOPICS

    @property
    def targets(self) -> Mapping[int, Replicas]:
        """The destinations of the partitions that are being moved."""
        return {index: move.nodes for index, move in self.moves.items()}

    def holders(self, index: int) -> Replicas:
        """Return all brokers with a replica of a partition, including those about to get one."""
        move = self.moves.get(index)
        if move is None:
            return self.replicas[index]
        return tuple(dict.fromkeys((*self.replicas[index], *move.nodes, *move.leaving)))

    def preferred(self, index: int) -> NodeId:
        """Return the broker that leads a partition if it can."""
        move = self.moves.get(index)
        return self.replicas[index][0] if move is None else move.nodes[0]

    def order(self, index: int) -> Replicas:
        """Return a partition's brokers in the order in which they should lead."""
        nodes = self.replicas[index] if index not in self.moves else self.moves[index].nodes
        return tuple(dict.fromkeys((*nodes, *self.replicas[index])))

    def is_birthplace(self, index: int, node: NodeId) -> bool:
        """Return whether a broker that starts a replica now is an original broker of the partition.

        Those may take the voters from the catalog; all others learn them from the leader.
        """
        return index not in self.moved and node in self.replicas[index]


class Registration(Struct, frozen=True, kw_only=True):
    """One broker of the cluster, as it last registered."""

    node: NodeId
    host: str
    port: int
    rack: str
    """Empty if unknown."""
    directory: bytes
    """The id of its data folder: a broker that lost its disk is a different one."""
    incarnation: int
    """Another number means a restart; 0 that it has never been there."""
    is_draining: bool = False
    """Whether it is being emptied: nothing new is placed on it."""
    levels: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The lowest and highest level of each feature that it supports; empty if it reports none."""

    @property
    def was_there(self) -> bool:
        """Whether it has ever been part of the cluster: one only admitted may never start."""
        return self.incarnation > 0
