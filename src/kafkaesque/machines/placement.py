"""Where the replicas of new partitions go: evenly, and racks apart.

The first replica of a partition is its *preferred* leader, so leaders are spread by spreading first
replicas. The choice is greedy: for each partition the broker that is to lead fewest leads, and the
others follow from the racks that the partition has not reached yet, where fewest replicas are.
Chance only decides among equals, so that many small topics do not all begin with the same broker.
"""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from kafkaesque.errors import InvalidReplicas
from kafkaesque.types import NodeId

Replicas: TypeAlias = tuple[NodeId, ...]
"""The brokers that hold one partition, the preferred leader first."""


def place(
    racks: Mapping[NodeId, str],
    held: Iterable[Replicas],
    partitions: int,
    replication: int,
    chance: random.Random,
) -> tuple[Replicas, ...]:
    """Return the replicas of so many new partitions; raises InvalidReplicas.

    `racks` are the brokers and where they stand, an empty name for nowhere in particular; `held` is
    what they hold already.
    """
    if not 1 <= replication <= len(racks):
        raise InvalidReplicas(
            f"{replication} replicas need as many brokers; there are {len(racks)}"
        )
    leads = dict.fromkeys(racks, 0)
    holds = dict.fromkeys(racks, 0)
    for replicas in held:
        _count(replicas, leads, holds)
    order = sorted(racks)
    chance.shuffle(order)
    placed: list[Replicas] = []
    for _ in range(partitions):
        first = min(order, key=lambda node: (leads[node], holds[node]))
        replicas = (first,)
        while len(replicas) < replication:  # ends: there are as many brokers
            replicas += (_next(order, replicas, racks, holds),)
        _count(replicas, leads, holds)
        placed.append(replicas)
    return tuple(placed)


def _next(
    order: Sequence[NodeId],
    chosen: Collection[NodeId],
    racks: Mapping[NodeId, str],
    holds: Mapping[NodeId, int],
) -> NodeId:
    reached = {racks[node] for node in chosen if racks[node]}
    free = [node for node in order if node not in chosen]
    return min(free, key=lambda node: (racks[node] in reached, holds[node]))


def _count(replicas: Replicas, leads: dict[NodeId, int], holds: dict[NodeId, int]) -> None:
    if replicas[0] in leads:
        leads[replicas[0]] += 1
    for node in replicas:
        if node in holds:
            holds[node] += 1
