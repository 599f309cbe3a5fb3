"""Where the replicas of new partitions go: evenly, and on different racks.

The first replica of a partition is its *preferred* leader, so spreading first replicas spreads
leaders. The choice is greedy: each partition first gets the broker that leads fewest, then brokers
on racks that the partition has not reached yet, with the fewest replicas. Chance decides only
among equals, so that many small topics do not all start with the same broker.
"""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from kafkaesque.machines.catalog.catalog_errors import InvalidReplicas
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
    """Return the replicas of `partitions` new partitions; raises InvalidReplicas.

    `racks` are the brokers and their racks, an empty name if unknown; `held` is what they hold
    already.
    """
    if not 1 <= replication <= len(racks):
        raise InvalidReplicas(f"cannot place {replication} replicas on {len(racks)} brokers")
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
