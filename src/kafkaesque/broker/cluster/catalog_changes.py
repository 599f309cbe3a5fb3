"""Carries changes of the catalog to its leader, and decides on them there.

Any broker accepts changes. The leader of the catalog decides at once and replies when the decision
is committed. A leader that lost its term meanwhile replies that the outcome is unknown, and so does
the carrier of a command that got no reply.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kafkaesque.broker.cluster.calls import COMMAND
from kafkaesque.broker.cluster.peers import Peers, ReplyTo
from kafkaesque.broker.machine_hosting.machine_host import MachineHost
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import KafkaesqueError, NotLeader
from kafkaesque.machines.catalog.broker_settings import set_broker_settings
from kafkaesque.machines.catalog.catalog import Catalog, Registration
from kafkaesque.machines.catalog.catalog_commands import (
    DEFAULT_REPLICATION,
    AddPartitions,
    AdmitBroker,
    Carried,
    Command,
    CreateTopic,
    DeleteTopic,
    DrainBroker,
    FinalizeFeatures,
    FinishMove,
    MovePartitions,
    RegisterBroker,
    RemoveBroker,
    SetBrokerSettings,
    SetSettings,
    TakeProducerIds,
    Unknown,
    to_refusal,
)
from kafkaesque.machines.catalog.catalog_errors import InvalidAssignment
from kafkaesque.machines.catalog.catalog_moves import (
    begin_moves,
    drain_broker,
    finish_move,
    remove_broker,
)
from kafkaesque.machines.catalog.features import finalize
from kafkaesque.machines.catalog.placement import Replicas, place
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import NodeId

REPLICATION = 3
"""The default replication of topics, if there are that many brokers."""


_Plain: TypeAlias = (
    CreateTopic
    | DeleteTopic
    | AddPartitions
    | SetSettings
    | TakeProducerIds
    | RegisterBroker
    | MovePartitions
    | FinishMove
    | DrainBroker
    | RemoveBroker
    | FinalizeFeatures
    | SetBrokerSettings
)
"""Commands whose reply says only that they were carried out, or what was taken."""


class Changes:
    """The changes that this broker requests or decides."""

    def __init__(
        self,
        node: NodeId,
        host: MachineHost[Catalog],
        peers: Peers,
        chance: random.Random,
        leader: Callable[[], NodeId | None],
        is_reachable: Callable[[NodeId], bool],
    ) -> None:
        self._node = node
        self._host = host
        self._peers = peers
        self._chance = chance
        self._leader = leader
        self._is_reachable = is_reachable

    def ask(self, command: Command, reply: ReplyTo) -> None:
        """Have a command carried out, here or by the leader; `reply` gets the outcome.

        Raises the catalog's errors at once if it is led here, and NotLeader if it has no known
        leader.
        """
        if self._host.is_hosted:
            self.decide(command, reply)
            return
        leader = self._leader()
        if leader is None or leader == self._node:
            raise NotLeader(None)
        self._peers.ask(leader, COMMAND, command, reply)

    def carry_out(self, command: Command, reply: ReplyTo) -> None:
        """Carry out another broker's command; errors are replies too."""
        try:
            self.decide(command, reply)
        except KafkaesqueError as error:
            reply(to_refusal(error))

    def decide(self, command: Command, reply: ReplyTo) -> None:
        """Decide on a command as the leader; raises the catalog's errors, and NotLeader."""
        catalog = self._host.machine
        first_id = -1
        if isinstance(command, AdmitBroker):
            first_id, records = catalog.admit(
                command.directory, command.host, command.port, command.rack, command.levels
            )
        else:
            if isinstance(command, TakeProducerIds):
                first_id = catalog.next_producer_id
            records = self._records(catalog, command)
        end = self._host.end_offset + len(records)

        def done(outcome: Outcome) -> None:
            if outcome is Outcome.COMMITTED:
                reply(Carried(end=end, first_id=first_id))
            else:
                reply(Unknown())

        if records:
            self._host.write(records, done)
        else:  # no change is needed; reply once all earlier decisions are committed
            self._host.when_committed(done)

    def _records(self, catalog: Catalog, command: _Plain) -> list[MachineRecord]:
        match command:
            case CreateTopic():
                replicas = self._place(catalog, command)
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
                    added = self._assigned(catalog, command.assignment)
                else:
                    replication = min(len(topic.replicas[0]), len(self._racks(catalog)))
                    added = self._new_replicas(catalog, count, replication)
                return catalog.add_partitions(command.name, command.partitions, added)
            case SetSettings():
                return catalog.set_settings(command.name, command.settings, command.expected)
            case TakeProducerIds():
                return catalog.give_producer_ids(command.count)
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
                return remove_broker(catalog, command.node, self._host.voters)
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

    def _place(self, catalog: Catalog, command: CreateTopic) -> Sequence[Replicas]:
        racks = self._racks(catalog)
        if command.assignment:
            return self._assigned(catalog, command.assignment)
        # Check that it is possible before using chance to place a large number.
        catalog.create_topic(command.name, command.partitions, command.topic_id, command.settings)
        replication = command.replication
        if replication == DEFAULT_REPLICATION:
            replication = min(REPLICATION, len(racks))
        return self._new_replicas(catalog, command.partitions, replication)

    def _assigned(
        self, catalog: Catalog, assignment: Sequence[Sequence[NodeId]]
    ) -> tuple[Replicas, ...]:
        racks = self._racks(catalog)
        for nodes in assignment:
            if not set(nodes) <= racks.keys():
                raise InvalidAssignment(f"not all brokers of {list(nodes)} can take partitions")
        return tuple(tuple(nodes) for nodes in assignment)

    def _new_replicas(
        self, catalog: Catalog, partitions: int, replication: int
    ) -> tuple[Replicas, ...]:
        racks = self._able(catalog, replication)
        if len(racks) == 1 and replication == 1:
            return (tuple(racks),) * partitions
        held = (nodes for topic in catalog.topics.values() for nodes in topic.replicas)
        return place(racks, held, partitions, replication, self._chance)

    def _able(self, catalog: Catalog, replication: int) -> Mapping[NodeId, str]:
        """Return the reachable brokers, and only as many others as needed.

        A partition that is created while most of its brokers are down has no leader.
        """
        racks = self._racks(catalog)
        there = [node for node in racks if self._is_reachable(node)]
        away = [node for node in sorted(racks) if node not in there]
        able = there + away[: max(0, replication - len(there))]
        return {node: rack for node, rack in racks.items() if node in able}

    def _racks(self, catalog: Catalog) -> Mapping[NodeId, str]:
        """Return the brokers that take new partitions, and their racks.

        A lone broker does not register itself.
        """
        if not any(broker.was_there for broker in catalog.brokers.values()):
            return {self._node: ""}
        able = (b for b in catalog.brokers.values() if b.was_there and not b.is_draining)
        return {broker.node: broker.rack for broker in able}
