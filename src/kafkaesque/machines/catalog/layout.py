"""Where partitions are and will be, and what brokers may hold: values for planning."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from kafkaesque.machines.catalog.catalog_values import Topic
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.types import NodeId

UNEVEN = 2
"""From this difference brokers are uneven: with 1, moving a replica would change nothing."""

Slot: TypeAlias = tuple[bytes, int]
"""A partition: the id of its topic, and its number."""


class PlannedMove(NamedTuple):
    """A move of a partition to these brokers, the preferred leader first."""

    topic_id: bytes
    partition: int
    nodes: Replicas


class Host(Struct, frozen=True, kw_only=True):
    """What planning needs to know of a broker."""

    rack: str = ""
    """Empty if unknown."""
    is_live: bool = True
    is_lost: bool = False
    """Whether it has been away for so long that its replicas are to be replaced."""
    is_draining: bool = False

    @property
    def may_take(self) -> bool:
        """Whether new replicas may be placed on it."""
        return self.is_live and not self.is_draining

    @property
    def must_go(self) -> bool:
        """Whether its replicas must leave it."""
        return self.is_lost or self.is_draining


class Layout(Struct, frozen=True, kw_only=True):
    """Where all partitions are, and where those being moved will be."""

    replicas: Mapping[Slot, Replicas]
    targets: Mapping[Slot, Replicas] = field(default_factory=dict)
    internal: Collection[bytes] = ()
    """The ids of topics that hold machines' state."""

    def goal(self, slot: Slot) -> Replicas:
        """Return where a partition will be once all moves are done."""
        return self.targets.get(slot) or self.replicas[slot]


def layout_of(topics: Iterable[Topic]) -> Layout:
    """Return where the partitions of these topics are."""
    replicas: dict[Slot, Replicas] = {}
    targets: dict[Slot, Replicas] = {}
    internal: list[bytes] = []
    for topic in topics:
        for index, nodes in enumerate(topic.replicas):
            replicas[topic.topic_id, index] = nodes
        for index, nodes in topic.targets.items():
            targets[topic.topic_id, index] = nodes
        if topic.is_internal:
            internal.append(topic.topic_id)
    return Layout(replicas=replicas, targets=targets, internal=internal)


def is_lopsided(layout: Layout, hosts: Mapping[NodeId, Host]) -> bool:
    """Return whether a broker has less than half its share: most likely it is new."""
    holds = {node: 0 for node, host in hosts.items() if host.may_take}
    for slot in layout.replicas:
        for node in layout.goal(slot):
            if node in holds:
                holds[node] += 1
    counts = holds.values()
    if not counts or max(counts) - min(counts) < UNEVEN:
        return False
    return min(counts) * 2 * len(counts) < sum(counts)


def spread(nodes: Iterable[NodeId], hosts: Mapping[NodeId, Host]) -> int:
    """Return in how many racks these are; a broker without a rack counts as its own."""
    return len({(hosts[node].rack or node) if node in hosts else node for node in nodes})


def live_count(nodes: Replicas, hosts: Mapping[NodeId, Host]) -> int:
    """Return how many of these are live."""
    return sum(1 for node in nodes if node in hosts and hosts[node].is_live)
