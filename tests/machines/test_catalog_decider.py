"""What the leader of the catalog decides, and what it needs to know beside the catalog for that."""

import random
from collections.abc import Collection, Sequence

import pytest

from kafkaesque.errors import TopicExists
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import (
    DEFAULT_REPLICATION,
    AddPartitions,
    AdmitBroker,
    Carried,
    CatalogCommand,
    CreateTopic,
    DrainBroker,
    NameCluster,
    RemoveBroker,
    TakeProducerIds,
)
from kafkaesque.machines.catalog.catalog_decider import REPLICATION, CatalogDecider, Surroundings
from kafkaesque.machines.catalog.catalog_errors import (
    BrokerInUse,
    InvalidAssignment,
    InvalidReplicas,
)
from kafkaesque.machines.catalog.features import CATALOG_VERSION, supported
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.machines.decision import Now
from kafkaesque.types import NodeId
from tests.machines.test_catalog_moves import a_broker


class Desk:
    """The decider on broker 1, and what it knows of the others."""

    def __init__(self, brokers: int, *, away: Collection[NodeId] = ()) -> None:
        self.end = 40
        self.voters: Collection[NodeId] = ()
        around = Surroundings(
            node=1,
            is_reachable=lambda node: node not in away,
            voters=lambda: self.voters,
            end=lambda: self.end,
            chance=random.Random(1),
        )
        self.machine = CatalogDecider(Catalog(), around)
        for node in range(1, brokers + 1):
            for record in self.machine.catalog.register(a_broker(node)):
                self.machine.apply(record)

    def ask(self, command: CatalogCommand | NameCluster) -> Carried:
        """Decide and apply; the answer is for the one that asked, once all of it holds."""
        answers: list[object] = []
        decision = self.machine.decide(command, answers.append, Now(0, 0))
        for record in decision.records:
            self.machine.apply(record)
        self.end += len(decision.records)
        assert decision.is_one_batch
        (reply,) = decision.replies
        assert reply.to == answers.append
        assert isinstance(reply.answer, Carried)
        assert reply.answer.end == self.end
        return reply.answer

    def create(
        self,
        *,
        partitions: int = 6,
        replication: int = DEFAULT_REPLICATION,
        assignment: Sequence[Sequence[NodeId]] = (),
    ) -> tuple[Replicas, ...]:
        """Create a topic; return where it was placed."""
        command = CreateTopic(
            name="orders",
            topic_id=bytes(16),
            partitions=partitions,
            replication=replication,
            settings={},
            assignment=[list(nodes) for nodes in assignment],
        )
        self.ask(command)
        return self.machine.catalog.topic("orders").replicas


def nodes_of(replicas: Sequence[Replicas]) -> set[NodeId]:
    return {node for nodes in replicas for node in nodes}


def test_a_single_broker_hosts_everything() -> None:
    assert Desk(brokers=0).create(partitions=2) == ((1,), (1,))


@pytest.mark.parametrize(("brokers", "copies"), [(2, 2), (5, REPLICATION)])
def test_topics_get_three_replicas_if_there_are_enough_brokers(brokers: int, copies: int) -> None:
    assert {len(nodes) for nodes in Desk(brokers).create()} == {copies}


def test_new_partitions_go_where_they_can_have_a_leader() -> None:
    desk = Desk(brokers=5, away=(2, 4))
    assert nodes_of(desk.create()) == {1, 3, 5}
    desk.ask(AddPartitions(name="orders", partitions=12))
    assert nodes_of(desk.machine.catalog.topic("orders").replicas) == {1, 3, 5}


def test_of_the_brokers_that_are_away_only_as_many_are_taken_as_are_needed() -> None:
    assert nodes_of(Desk(brokers=5, away=(2, 3, 4)).create()) == {1, 2, 5}


def test_a_drained_broker_gets_nothing_new() -> None:
    desk = Desk(brokers=4)
    desk.ask(DrainBroker(node=2, is_draining=True))
    with pytest.raises(InvalidAssignment):
        desk.create(assignment=[[1, 2]])
    with pytest.raises(InvalidReplicas):
        desk.create(replication=4)
    assert nodes_of(desk.create()) == {1, 3, 4}


def test_a_refused_command_leaves_the_catalog_as_it_is() -> None:
    desk = Desk(brokers=3)
    desk.create()
    before = list(desk.machine.records())
    with pytest.raises(TopicExists):
        desk.create()
    assert list(desk.machine.records()) == before


def test_numbers_are_given_out_once() -> None:
    desk = Desk(brokers=3)
    assert [desk.ask(TakeProducerIds(count=10)).first_id for _ in range(2)] == [0, 10]
    asked = AdmitBroker(directory=b"a new one" + bytes(7), host="here", port=1, rack="")
    assert [desk.ask(asked).first_id for _ in range(2)] == [4, 4]


def test_a_voter_on_the_catalog_is_not_removed() -> None:
    desk = Desk(brokers=3)
    desk.voters = (1, 2, 3)
    with pytest.raises(BrokerInUse):
        desk.ask(RemoveBroker(node=3))
    desk.voters = (1, 2)
    desk.ask(RemoveBroker(node=3))
    assert desk.machine.catalog.removed == {3}


def test_a_cluster_starts_at_the_highest_levels_of_its_first_broker() -> None:
    desk = Desk(brokers=0)
    desk.ask(NameCluster(cluster_id="kitchen", levels=supported()))
    assert desk.machine.catalog.cluster_id == "kitchen"
    assert desk.machine.catalog.finalized.levels[CATALOG_VERSION] == supported()[CATALOG_VERSION][1]
