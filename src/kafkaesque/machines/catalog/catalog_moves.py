"""What the catalog decides on partition moves, and on draining and removing brokers.

Like the deciding methods of `Catalog`, these look at the state and return records, or raise. A move
starts here and is carried out by the partition's leader (`broker/cluster/mover.py`), which reports
when the group has exactly the voters that the move wants:

    none --begin--> moving --the leader reports--> none, and `replicas` are the move's
                    moving --begin again--> moving to elsewhere, under a new number
                    moving --call off-----> moving back to `replicas`, under a new number

A target of an abandoned move may already vote, so it keeps its replica until a move has finished.
The number tells a late report from one on the current move.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from kafkaesque.errors import UnknownTopic
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_errors import (
    BrokerInUse,
    InvalidAssignment,
    NoMove,
    UnknownBroker,
)
from kafkaesque.machines.catalog.catalog_records import (
    REMOVED_KEY,
    BrokersRemoved,
    broker_key,
    broker_record,
    record,
    settings_record,
    topic_record,
)
from kafkaesque.machines.catalog.catalog_values import Move, Topic
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import NodeId


def begin_moves(
    catalog: Catalog, moves: Iterable[tuple[bytes, int, Sequence[NodeId]]]
) -> list[MachineRecord]:
    """Decide to move partitions, all or none; a move without brokers is called off.

    Raises UnknownTopicId, UnknownTopic for a missing partition, InvalidAssignment, and NoMove if
    there is none to call off.
    """
    changed: dict[bytes, Topic] = {}
    seen: set[tuple[bytes, int]] = set()
    for topic_id, index, nodes in moves:
        topic = changed.get(topic_id) or catalog.topic_of_id(topic_id)
        if not 0 <= index < topic.partitions:
            raise UnknownTopic(f"topic {topic.name} has no partition {index}")
        if (topic_id, index) in seen:
            raise InvalidAssignment(f"partition {index} of topic {topic.name} is named twice")
        seen.add((topic_id, index))
        if nodes:
            _check_target(catalog, nodes, topic.holders(index))
        elif index not in topic.moves:
            raise NoMove(f"partition {index} of topic {topic.name} is not being moved")
        changed[topic_id] = _begun(topic, index, tuple(nodes) or topic.replicas[index])
    return [
        topic_record(topic)
        for topic_id, topic in changed.items()
        if topic is not catalog.topic_by_id(topic_id)
    ]


def finish_move(
    catalog: Catalog, topic_id: bytes, index: int, nodes: Sequence[NodeId], number: int
) -> list[MachineRecord]:
    """Decide to end a move whose partition has arrived; raises UnknownTopicId, NoMove.

    Only the partition's leader may report this, and only of the move that it carried out.
    """
    topic = catalog.topic_of_id(topic_id)
    move = topic.moves.get(index)
    if move is None or not _is_meant(move, nodes, number):
        raise NoMove(f"move {number} of partition {index} of topic {topic.name} is not under way")
    replicas = list(topic.replicas)
    is_elsewhere = set(replicas[index]) != set(move.nodes)
    replicas[index] = move.nodes
    moved = topic.moved | {index} if is_elsewhere else topic.moved
    rest = {other: found for other, found in topic.moves.items() if other != index}
    return [topic_record(replace(topic, replicas=tuple(replicas), moves=rest, moved=moved))]


def drain_broker(catalog: Catalog, node: NodeId, *, is_draining: bool) -> list[MachineRecord]:
    """Decide whether to drain a broker; raises UnknownBroker."""
    broker = catalog.brokers.get(node)
    if broker is None:
        raise UnknownBroker(f"there is no broker {node}")
    if broker.is_draining == is_draining:
        return []
    return [broker_record(replace(broker, is_draining=is_draining))]


def remove_broker(
    catalog: Catalog, node: NodeId, voters: Collection[NodeId]
) -> list[MachineRecord]:
    """Decide to remove a broker; raises UnknownBroker, BrokerInUse.

    `voters` are those of the catalog itself. Removing a broker twice changes nothing, so a caller
    that missed the answer may retry.
    """
    if node in catalog.removed:
        return []
    if node not in catalog.brokers:
        raise UnknownBroker(f"there is no broker {node}")
    if node in voters:
        raise BrokerInUse(f"broker {node} still votes on the catalog")
    for topic in catalog.topics.values():
        for index in range(topic.partitions):
            if node in topic.holders(index):
                raise BrokerInUse(
                    f"broker {node} still holds partition {index} of topic {topic.name}"
                )
    removed = BrokersRemoved(nodes=sorted({*catalog.removed, node}))
    gone = [record(REMOVED_KEY, removed), MachineRecord(broker_key(node), None)]
    if node in catalog.broker_settings:
        gone.append(settings_record(node, {}))
    return gone


def _begun(topic: Topic, index: int, nodes: tuple[NodeId, ...]) -> Topic:
    """Return the topic with a move to `nodes`; unchanged if they are already its goal."""
    move = topic.moves.get(index)
    if nodes == (topic.replicas[index] if move is None else move.nodes):
        return topic
    number = topic.moves_begun + 1
    before = () if move is None else (*move.nodes, *move.leaving)
    stay = {*topic.replicas[index], *nodes}
    leaving = tuple(node for node in dict.fromkeys(before) if node not in stay)
    new = Move(number=number, nodes=nodes, leaving=leaving)
    return replace(topic, moves={**topic.moves, index: new}, moves_begun=number)


def _is_meant(move: Move, nodes: Sequence[NodeId], number: int) -> bool:
    return move.number == number and move.nodes == tuple(nodes)


def _check_target(catalog: Catalog, nodes: Sequence[NodeId], holders: Collection[NodeId]) -> None:
    if len(set(nodes)) != len(nodes):
        raise InvalidAssignment(f"a partition cannot be on brokers {list(nodes)}")
    for node in nodes:
        broker = catalog.brokers.get(node)
        if broker is None:
            raise InvalidAssignment(f"there is no broker {node}")
        if not broker.was_there:
            raise InvalidAssignment(f"broker {node} was admitted but has never started")
        if broker.is_draining and node not in holders:  # a broker that holds it may keep it
            raise InvalidAssignment(f"broker {node} is being drained")
