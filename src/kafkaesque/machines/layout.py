"""Where partitions are and where they will be, and what brokers may hold: values for planning."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from kafkaesque.machines.catalog_values import Topic
from kafkaesque.machines.placement import Replicas
from kafkaesque.types import NodeId

UNEVEN = 2
"""Whoever has one more than another is even with it: to give that away would change nothing."""

Slot: TypeAlias = tuple[bytes, int]
"""A partition: the id of its topic, and its number."""


class PlannedMove(NamedTuple):
    """Let a partition be on these brokers, the preferred leader first."""

    topic_id: bytes
    partition: int
    nodes: Replicas


class Host(Struct, frozen=True, kw_only=True):
    """A broker, as far as it matters for what it may hold."""

    rack: str = ""
    """Empty for nowhere in particular."""
    is_live: bool = True
    is_lost: bool = False
    """Whether it has been away for so long that its replicas are to be replaced."""
    is_draining: bool = False

    @property
    def may_take(self) -> bool:
        """Whether new replicas may be put on it."""
        return self.is_live and not self.is_draining

    @property
    def must_go(self) -> bool:
        """Whether replicas may not stay on it."""
        return self.is_lost or self.is_draining


class Layout(Struct, frozen=True, kw_only=True):
    """Where all partitions are, and where those that are being moved will be."""

    replicas: Mapping[Slot, Replicas]
    targets: Mapping[Slot, Replicas] = field(default_factory=dict)
    internal: Collection[bytes] = ()
    """The ids of topics on which machines live."""

    def goal(self, slot: Slot) -> Replicas:
        """Return where a partition will be when nothing moves any more."""
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
    """Return whether a broker has less than half of its share: one that was added, most likely."""
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
    """Return in how many places these are; without a rack each is in its own."""
    return len({(hosts[node].rack or node) if node in hosts else node for node in nodes})


def live_count(nodes: Replicas, hosts: Mapping[NodeId, Host]) -> int:
    """Return how many of these are there."""
    return sum(1 for node in nodes if node in hosts and hosts[node].is_live)
