"""Moves that a command plans, with the brokers' own functions on what they report."""

import random
from collections.abc import Mapping, Sequence

from kafkaesque.cli.output import Table
from kafkaesque.client.overview import Overview
from kafkaesque.client.topics import Place
from kafkaesque.errors import UnknownTopic
from kafkaesque.machines.catalog.layout import Host, Layout, PlannedMove
from kafkaesque.machines.catalog.move_planning import plan, set_replication
from kafkaesque.types import NodeId

MOVES_MAX = 10_000
"""Moves per command; brokers carry out a few at a time anyway."""

MOVE_COLUMNS = ("topic", "partition", "from", "to")


def balanced(seen: Overview) -> Sequence[PlannedMove]:
    """Return the moves that even out partitions and leaders."""
    return plan(_layout(seen), _hosts(seen), random.Random(), MOVES_MAX, balances=True)


def resized(seen: Overview, name: str, replicas: int) -> Sequence[PlannedMove]:
    """Return the moves for this number of replicas; raises UnknownTopic, InvalidReplicas."""
    found = [topic for topic in seen.topics if topic.name == name]
    if not found:
        raise UnknownTopic(f"there is no topic {name}")
    topic_id = found[0].topic_id
    return set_replication(_layout(seen), topic_id, replicas, _hosts(seen), random.Random())


def table_of(seen: Overview, planned: Sequence[PlannedMove]) -> Table:
    """Return a table of planned moves."""
    names = {topic.topic_id: topic.name for topic in seen.topics}
    now = _layout(seen).replicas
    rows = [
        (names[one.topic_id], one.partition, now[one.topic_id, one.partition], one.nodes)
        for one in planned
    ]
    return Table(kind="move", columns=MOVE_COLUMNS, rows=rows)


def wanted(seen: Overview, planned: Sequence[PlannedMove]) -> Mapping[Place, Sequence[NodeId]]:
    """Return planned moves by topic name and partition."""
    names = {topic.topic_id: topic.name for topic in seen.topics}
    return {(names[one.topic_id], one.partition): one.nodes for one in planned}


def _hosts(seen: Overview) -> dict[NodeId, Host]:
    return {
        one.node: Host(rack=one.rack, is_live=one.is_there, is_draining=one.is_draining)
        for one in seen.brokers
    }


def _layout(seen: Overview) -> Layout:
    ids = {topic.name: topic.topic_id for topic in seen.topics}
    return Layout(
        replicas={(t.topic_id, one.index): one.replicas for t, one in seen.partitions()},
        targets={
            (ids[move.topic], move.partition): move.nodes
            for move in seen.moves
            if move.topic in ids
        },
        internal=[topic.topic_id for topic in seen.topics if topic.is_internal],
    )
