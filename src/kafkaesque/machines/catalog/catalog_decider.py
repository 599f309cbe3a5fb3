"""Decides on commands to the catalog, by its own deciding methods and those of moves and features.

The machine that the coordinator of the catalog hosts (`broker/cluster/catalog_coordinator.py`). It
decides nothing as time passes: the cluster's caretakers send commands like everybody else.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from kafkaesque.machines.catalog.broker_settings import set_broker_settings
from kafkaesque.machines.catalog.catalog import Catalog, Registration
from kafkaesque.machines.catalog.catalog_commands import (
    DEFAULT_REPLICATION,
    NO_NUMBER,
    AddPartitions,
    AdmitBroker,
    Carried,
    CatalogCommand,
    CreateTopic,
    DeleteTopic,
    DrainBroker,
    FinalizeFeatures,
    FinishMove,
    MovePartitions,
    NameCluster,
    RegisterBroker,
    RemoveBroker,
    SetBrokerSettings,
    SetGroupSettings,
    SetSettings,
    TakeProducerIds,
)
from kafkaesque.machines.catalog.catalog_errors import InvalidAssignment
from kafkaesque.machines.catalog.catalog_moves import (
    begin_moves,
    drain_broker,
    finish_move,
    remove_broker,
)
from kafkaesque.machines.catalog.features import finalize, first_features
from kafkaesque.machines.catalog.group_settings import set_group_settings
from kafkaesque.machines.catalog.placement import Replicas, place
from kafkaesque.machines.decision import Decision, Now, Reply, ReplyTo
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import NodeId, Offset

REPLICATION = 3
"""The default replication of topics, if there are that many brokers."""


_Plain: TypeAlias = (
    CreateTopic
    | DeleteTopic
    | AddPartitions
    | SetSettings
    | RegisterBroker
    | MovePartitions
    | FinishMove
    | DrainBroker
    | RemoveBroker
    | FinalizeFeatures
    | SetBrokerSettings
    | SetGroupSettings
)
"""Commands whose answer says only that they were carried out."""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What decisions depend on beside the catalog, as its leader sees it."""

    node: NodeId
    """The leader."""
    is_reachable: Callable[[NodeId], bool]
    voters: Callable[[], Collection[NodeId]]
    """The voters on the catalog itself."""
    end: Callable[[], Offset]
    """The offset that the next record gets."""
    chance: random.Random


class CatalogDecider:
    """The catalog, and the decisions on it. Only `apply` changes it."""

    def __init__(self, catalog: Catalog, around: Surroundings) -> None:
        self.catalog = catalog
        self._around = around

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for an unknown one."""
        self.catalog.apply(record)

    def records(self) -> Iterable[MachineRecord]:
        """Return records that rebuild the catalog."""
        return self.catalog.records()

    def decide(self, command: CatalogCommand | NameCluster, to: ReplyTo, now: Now) -> Decision:
        """Decide on a command, all or nothing; raises the catalog's errors."""
        first_id, records = self._numbered(command)
        carried = Carried(end=self._around.end() + len(records), first_id=first_id)
        return Decision(records=records, replies=[Reply(to, carried)], is_one_batch=True)

    def tick(self, now: Now) -> Decision:
        """Nothing here is ever due."""
        return Decision()

    def expire(self, now: Now) -> Decision:
        """Nothing here is ever unused."""
        return Decision()

    def forget_topic(self, topic_id: bytes) -> Decision:
        """It deletes topics itself."""
        return Decision()

    def waiting(self) -> Iterable[ReplyTo]:
        """Every command is decided at once."""
        return ()

    def _numbered(self, command: CatalogCommand | NameCluster) -> tuple[int, list[MachineRecord]]:
        """Return the first of the numbers that the command gives out, and its records."""
        catalog = self.catalog
        match command:
            case AdmitBroker():
                return catalog.admit(
                    command.directory, command.host, command.port, command.rack, command.levels
                )
            case TakeProducerIds():
                return catalog.next_producer_id, catalog.give_producer_ids(command.count)
            case NameCluster():
                named = catalog.name_cluster(command.cluster_id)
                return NO_NUMBER, [*named, *first_features(command.levels)]
            case plain:
                return NO_NUMBER, self._records(plain)

    def _records(self, command: _Plain) -> list[MachineRecord]:
        catalog, around = self.catalog, self._around
        match command:
            case CreateTopic():
                replicas = self._place(command)
                return catalog.create_topic(
                    command.name, len(replicas), command.topic_id, command.settings, replicas
                )
            case DeleteTopic():
                return catalog.delete_topic(command.name)
            case AddPartitions():
                catalog.add_partitions(command.name, command.partitions)  # raises if impossible
                topic = catalog.topic(command.name)
                count = command.partitions - topic.partitions
                if command.assignment:
                    added = self._assigned(command.assignment)
                else:
                    replication = min(len(topic.replicas[0]), len(self._racks()))
                    added = self._new_replicas(count, replication)
                return catalog.add_partitions(command.name, command.partitions, added)
            case SetSettings():
                return catalog.set_settings(command.name, command.settings, command.expected)
            case RegisterBroker():
                return catalog.register(
                    Registration(
                        node=command.node,
                        host=command.host,
                        port=command.port,
                        rack=command.rack,
                        directory=command.directory,
                        incarnation=command.incarnation,
                        levels=command.levels,
                    )
                )
            case MovePartitions():
                return begin_moves(catalog, command.moves)
            case FinishMove():
                return finish_move(
                    catalog, command.topic_id, command.partition, command.nodes, command.number
                )
            case DrainBroker():
                return drain_broker(catalog, command.node, is_draining=command.is_draining)
            case RemoveBroker():
                return remove_broker(catalog, command.node, around.voters())
            case FinalizeFeatures():
                return finalize(
                    catalog.finalized,
                    catalog.brokers.values(),
                    command.levels,
                    can_lower=command.can_lower,
                )
            case SetBrokerSettings():
                return set_broker_settings(
                    catalog, command.node, command.settings, command.expected
                )
            case SetGroupSettings():
                return set_group_settings(
                    catalog, command.group, command.settings, command.expected
                )

    def _place(self, command: CreateTopic) -> Sequence[Replicas]:
        racks = self._racks()
        if command.assignment:
            return self._assigned(command.assignment)
        # Check that it is possible before using chance to place a large number.
        self.catalog.create_topic(
            command.name, command.partitions, command.topic_id, command.settings
        )
        replication = command.replication
        if replication == DEFAULT_REPLICATION:
            replication = min(REPLICATION, len(racks))
        return self._new_replicas(command.partitions, replication)

    def _assigned(self, assignment: Sequence[Sequence[NodeId]]) -> tuple[Replicas, ...]:
        racks = self._racks()
        for nodes in assignment:
            if not set(nodes) <= racks.keys():
                raise InvalidAssignment(f"not all brokers of {list(nodes)} can take partitions")
        return tuple(tuple(nodes) for nodes in assignment)

    def _new_replicas(self, partitions: int, replication: int) -> tuple[Replicas, ...]:
        racks = self._able(replication)
        if len(racks) == 1 and replication == 1:
            return (tuple(racks),) * partitions
        held = (nodes for topic in self.catalog.topics.values() for nodes in topic.replicas)
        return place(racks, held, partitions, replication, self._around.chance)

    def _able(self, replication: int) -> Mapping[NodeId, str]:
        """Return the reachable brokers, and only as many others as needed.

        A partition that is created while most of its brokers are down has no leader.
        """
        racks = self._racks()
        there = [node for node in racks if self._around.is_reachable(node)]
        away = [node for node in sorted(racks) if node not in there]
        able = there + away[: max(0, replication - len(there))]
        return {node: rack for node, rack in racks.items() if node in able}

    def _racks(self) -> Mapping[NodeId, str]:
        """Return the brokers that take new partitions, and their racks.

        A lone broker does not register itself.
        """
        brokers = self.catalog.brokers.values()
        if not any(broker.was_there for broker in brokers):
            return {self._around.node: ""}
        able = (b for b in brokers if b.was_there and not b.is_draining)
        return {broker.node: broker.rack for broker in able}
