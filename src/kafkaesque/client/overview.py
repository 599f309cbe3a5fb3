"""A whole cluster at one moment, as reported by its brokers: the input of status and doctor."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kafkaesque.client.admin import Admin
from kafkaesque.client.brokers import BrokerInfo, FolderInfo, MoveInfo, QuorumInfo
from kafkaesque.client.errors import ClientError
from kafkaesque.client.features import FeatureInfo
from kafkaesque.client.topics import PartitionInfo, Place, TopicInfo
from kafkaesque.types import NodeId

REPLICATION = 3
"""Replicas that a topic should have, if there are enough brokers."""

MIN_IN_SYNC = "min.insync.replicas"


def is_majority(some: Collection[NodeId], replicas: Collection[NodeId]) -> bool:
    """Return whether the replicas among `some` are a majority."""
    return 2 * sum(node in some for node in replicas) > len(replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The known state of a cluster."""

    cluster_id: str | None = None
    brokers: tuple[BrokerInfo, ...]
    quorum: QuorumInfo | None
    """None while the catalog has no leader."""
    topics: tuple[TopicInfo, ...] = ()
    moves: tuple[MoveInfo, ...] = ()
    folders: Mapping[NodeId, FolderInfo] = field(default_factory=dict)
    """Only of brokers that report it."""
    problems: Mapping[NodeId, Mapping[str, str]] = field(default_factory=dict)
    """The problems that brokers report of themselves, by kind."""
    min_in_sync: Mapping[str, int] = field(default_factory=dict)
    features: tuple[FeatureInfo, ...] = ()
    clock_doubts: Mapping[NodeId, str] = field(default_factory=dict)
    """What is wrong with the clocks of brokers that report it."""

    @property
    def broker(self) -> Mapping[NodeId, BrokerInfo]:
        """The brokers by their ids."""
        return {one.node: one for one in self.brokers}

    @property
    def there(self) -> tuple[BrokerInfo, ...]:
        """The live brokers."""
        return tuple(one for one in self.brokers if one.is_there)

    @property
    def default_replication(self) -> int:
        """How many replicas a new topic gets."""
        return min(REPLICATION, len(self.there))

    def partitions(self) -> Iterator[tuple[TopicInfo, PartitionInfo]]:
        """Yield every partition with its topic."""
        for topic in self.topics:
            for one in topic.partitions:
                yield topic, one

    def held_by(self, node: NodeId) -> list[Place]:
        """Return the partitions that a broker holds, or will hold."""
        held = {(t.name, one.index) for t, one in self.partitions() if node in one.replicas}
        held |= {(m.topic, m.partition) for m in self.moves if node in (*m.nodes, *m.removing)}
        return sorted(held)

    def is_led(self, one: PartitionInfo) -> bool:
        """Return whether a partition has a live leader.

        A broker that is cut off from the rest names earlier leaders.
        """
        return any(broker.node == one.leader for broker in self.there)

    @property
    def given_up(self) -> set[NodeId]:
        """The unavailable brokers that must not come back with their old data.

        If most replicas of a partition are away, it gets a leader only by `cluster recover`; and a
        drained broker is meant to go.
        """
        there = {one.node for one in self.there}
        gone = {one.node for one in self.brokers if one.is_draining}
        for _, one in self.partitions():
            if self.is_led(one) and not is_majority(there, one.replicas):
                gone.update(one.replicas)
        return gone - there

    def led_by(self, node: NodeId) -> int:
        """Return how many partitions a broker leads."""
        return sum(one.leader == node and self.is_led(one) for _, one in self.partitions())

    def progress(self, move: MoveInfo) -> int | None:
        """Return how much of a partition its new replicas have, in percent; None if unknown."""
        place = move.topic, move.partition
        sizes = {node: folder.sizes.get(place) for node, folder in self.folders.items()}
        whole = max((size for size in sizes.values() if size is not None), default=None)
        had = [sizes.get(node) for node in move.adding]
        if whole is None or None in had:
            return None
        if not whole or not had:
            return 100
        return min(100, min(size or 0 for size in had) * 100 // whole)


def look(admin: Admin) -> Overview:
    """Ask the brokers for everything; one that does not answer has no folder."""
    brokers = admin.brokers.list()
    topics = tuple(admin.topics.list())
    folders: dict[NodeId, FolderInfo] = {}
    doubts: dict[NodeId, str] = {}
    problems: dict[NodeId, Mapping[str, str]] = {}
    for one in brokers:
        if one.is_there:
            try:
                folders[one.node] = admin.brokers.folder(one.node)
                doubts[one.node] = admin.brokers.clock_doubt(one.node)
                problems[one.node] = admin.brokers.problems(one.node)
            except ClientError:
                continue  # it has left meanwhile
    return Overview(
        cluster_id=admin.cluster().cluster_id,
        brokers=tuple(brokers),
        quorum=admin.brokers.quorum(),
        topics=topics,
        moves=tuple(admin.brokers.moves()),
        features=tuple(admin.features.list()),
        folders=folders,
        clock_doubts=doubts,
        problems=problems,
        min_in_sync=admin.topics.numbers([topic.name for topic in topics], MIN_IN_SYNC),
    )
