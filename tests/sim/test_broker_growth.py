"""Brokers that join, stay away and leave: who votes on the catalog, with everything running."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.cluster_config import ClusterConfig
from kafkaesque.config import BrokerConfig
from kafkaesque.entry import Voters
from kafkaesque.machines.catalog.catalog_commands import (
    AdmitBroker,
    Carried,
    CatalogCommand,
    DrainBroker,
    Refused,
    RemoveBroker,
    Reply,
)
from kafkaesque.machines.catalog.catalog_errors import BrokerInUse
from kafkaesque.machines.catalog.features import supported
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.broker_growth import VoterChecks, has_right_voters
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId

STEPS_MAX = 40_000
REPLACE_MS = 2_000
CLUSTER = ClusterConfig(look_ms=50, plan_ms=100, voter_replace_ms=REPLACE_MS)


def wait(world: BrokerWorld, is_done: Callable[[], bool]) -> None:
    assert world.run_until(is_done, STEPS_MAX), "the condition never holds"


def pass_ms(world: BrokerWorld, duration: int) -> None:
    end = world.clock.time + duration
    wait(world, lambda: world.clock.time >= end)


def a_world(brokers: int, *, racks: int = 1) -> BrokerWorld:
    """One broker that starts a cluster, and others that have joined it."""
    settings = BrokerSettings(
        brokers=1, voters=1, racks=racks, broker=BrokerConfig(cluster=CLUSTER)
    )
    world = BrokerWorld(1, settings)
    VoterChecks(world).begin()
    wait(world, lambda: len(world.able()) == 1)
    for _ in range(brokers - 1):
        join(world)
    return world


def ask(world: BrokerWorld, command: CatalogCommand) -> Reply:
    """Have a command carried out by whoever leads the catalog."""
    replies: list[Reply] = []
    machine = world.nodes[leader(world)]
    world.ask_broker(machine, lambda broker: broker.carry_out(command, replies.append))
    wait(world, lambda: bool(replies))
    return replies[0]


def join(world: BrokerWorld, *, starts: bool = True) -> NodeId:
    """Let a broker with an empty disk join."""
    directory = world.chance.randbytes(16)
    levels = dict(supported())
    asked = AdmitBroker(directory=directory, host="new", port=9092, rack="", levels=levels)
    reply = ask(world, asked)
    assert isinstance(reply, Carried)
    node = reply.first_id
    if starts:
        world.add(node, Voters(voters=()), directory)
        wait(world, lambda: world.nodes[node].is_ready)
    return node


def voters(world: BrokerWorld) -> Voters:
    leader = world.leading(CATALOG_GROUP)
    assert leader is not None
    return leader.raft.voters


def leader(world: BrokerWorld) -> NodeId:
    found = world.leading(CATALOG_GROUP)
    assert found is not None
    return found.raft.node


def broker_of(world: BrokerWorld, node: NodeId) -> Broker:
    broker = world.nodes[node].broker
    assert broker is not None
    return broker


def is_voting_without(world: BrokerWorld, node: NodeId) -> bool:
    """Whether three others keep the catalog, also while none of them may lead it."""
    found = world.leading(CATALOG_GROUP)
    if found is None:
        return False
    return node not in found.raft.voters.voters and len(found.raft.voters.voters) == 3


def directory_of(world: BrokerWorld, node: NodeId) -> bytes:
    return broker_of(world, 1).catalog.brokers[node].directory


def test_two_brokers_are_one_voter_and_one_learner() -> None:
    world = a_world(2)
    pass_ms(world, 3_000)
    assert voters(world) == Voters(voters=(1,), learners=(2,))


@pytest.mark.parametrize(("brokers", "count"), [(3, 3), (4, 3), (5, 5), (6, 5)])
def test_voters_are_added_automatically_as_brokers_join(brokers: int, count: int) -> None:
    world = a_world(brokers)
    wait(world, lambda: has_right_voters(world))
    assert len(voters(world).voters) == count
    pass_ms(world, 2_000)
    assert len(voters(world).voters) == count
    assert set(voters(world).members) == set(range(1, brokers + 1))


def test_an_admitted_broker_that_never_starts_is_a_learner_and_delays_nothing() -> None:
    world = a_world(3)
    node = join(world, starts=False)
    wait(world, lambda: node in voters(world).learners)
    wait(world, lambda: len(voters(world).voters) == 3)
    join(world)
    pass_ms(world, 2_000)
    assert len(voters(world).voters) == 3
    assert node in voters(world).learners


def test_an_isolated_learner_gets_no_vote_and_the_other_does_not_vote_alone() -> None:
    world = a_world(2)
    for node in (1, 2):
        world.network.cut(3, node)  # it receives, and cannot send
    assert join(world, starts=False) == 3
    world.add(3, Voters(voters=()), directory_of(world, 3))
    pass_ms(world, 3_000)
    assert voters(world) == Voters(voters=(1,), learners=(2, 3))
    world.network.heal()
    wait(world, lambda: voters(world).voters == (1, 2, 3))


def test_a_learner_whose_disk_is_behind_gets_no_vote() -> None:
    world = a_world(2)
    disk = world.nodes[2].disk
    disk.faults = replace(disk.faults, sync_delay_min=1 << 30, sync_delay_max=1 << 30)
    answers: list[object] = []
    world.ask_broker(world.nodes[1], lambda b: b.create_topic("orders", 1, {}, answers.append))
    join(world)
    pass_ms(world, 2_000)
    assert voters(world) == Voters(voters=(1,), learners=(2, 3))
    world.nodes[2].kill()
    disk.mend(world.settings.disk)
    world.start(world.nodes[2])
    wait(world, lambda: voters(world).voters == (1, 2, 3))


def test_a_voter_that_returns_in_time_keeps_its_vote() -> None:
    world = a_world(4)
    wait(world, lambda: has_right_voters(world))
    before = voters(world)
    away = next(node for node in before.voters if node != leader(world))
    world.nodes[away].kill()
    pass_ms(world, REPLACE_MS // 2)
    assert voters(world) == before
    world.start(world.nodes[away])
    pass_ms(world, 2 * REPLACE_MS)
    assert voters(world) == before


def test_an_absent_voter_is_replaced_and_returns_as_a_learner() -> None:
    world = a_world(4)
    wait(world, lambda: has_right_voters(world))
    before = voters(world)
    away = next(node for node in before.voters if node != leader(world))
    world.nodes[away].kill()
    gone_at = world.clock.time
    wait(world, lambda: away not in voters(world).voters)
    assert world.clock.time - gone_at >= REPLACE_MS
    wait(world, lambda: len(voters(world).voters) == 3)
    assert set(before.learners) < set(voters(world).voters)
    world.start(world.nodes[away])
    wait(world, lambda: world.nodes[away].is_ready)
    pass_ms(world, REPLACE_MS)
    assert away in voters(world).learners


def test_an_absent_leader_is_replaced_too() -> None:
    world = a_world(4)
    wait(world, lambda: has_right_voters(world))
    away = leader(world)
    world.nodes[away].kill()
    wait(world, lambda: is_voting_without(world, away))


def test_a_lost_voter_stays_one_while_there_is_no_replacement() -> None:
    world = a_world(3)
    wait(world, lambda: has_right_voters(world))
    away = next(node for node in voters(world).voters if node != leader(world))
    world.nodes[away].kill()
    pass_ms(world, 3 * REPLACE_MS)
    assert voters(world) == Voters(voters=(1, 2, 3))


def test_a_drained_broker_gives_up_its_vote_and_can_be_removed() -> None:
    world = a_world(4)
    wait(world, lambda: has_right_voters(world))
    node = leader(world)
    assert isinstance(ask(world, RemoveBroker(node=node)), Refused)
    assert isinstance(ask(world, DrainBroker(node=node, is_draining=True)), Carried)
    wait(world, lambda: is_voting_without(world, node))
    assert isinstance(ask(world, RemoveBroker(node=node)), Carried)
    wait(world, lambda: node not in voters(world).members)
    pass_ms(world, 1_000)
    assert set(voters(world).members) == set(world.nodes) - {node}
    for other in set(world.nodes) - {node}:
        broker = world.nodes[other].broker
        assert broker is not None
        assert not broker.replicas.is_reachable(node), "it gets no more beats"


def test_a_removed_broker_never_serves_again_even_with_its_disk() -> None:
    world = a_world(4)
    wait(world, lambda: has_right_voters(world))
    node = next(one for one in world.nodes if one != leader(world))
    machine = world.nodes[node]
    machine.kill()
    assert isinstance(ask(world, DrainBroker(node=node, is_draining=True)), Carried)
    wait(world, lambda: is_voting_without(world, node))
    assert isinstance(ask(world, RemoveBroker(node=node)), Carried)
    world.start(machine)
    pass_ms(world, 5_000)
    assert not machine.is_ready
    assert node not in voters(world).members


def test_after_one_of_three_brokers_is_removed_there_are_one_voter_and_one_learner() -> None:
    world = a_world(3)
    wait(world, lambda: has_right_voters(world))
    refused = ask(world, RemoveBroker(node=3))
    assert isinstance(refused, Refused)
    assert refused.error == BrokerInUse.__name__
    assert isinstance(ask(world, DrainBroker(node=3, is_draining=True)), Carried)
    wait(world, lambda: len(voters(world).voters) == 1)
    assert isinstance(ask(world, RemoveBroker(node=3)), Carried)
    wait(world, lambda: len(voters(world).members) == 2)


def test_voters_are_in_different_racks_where_possible() -> None:
    world = a_world(5, racks=3)
    wait(world, lambda: has_right_voters(world))
    world = a_world(4, racks=3)  # brokers 1 and 4 are in the same rack
    wait(world, lambda: has_right_voters(world))
    assert {node % 3 for node in voters(world).voters} == {0, 1, 2}


def test_all_brokers_can_be_killed_and_restart_as_they_were() -> None:
    world = a_world(3)
    wait(world, lambda: has_right_voters(world))
    for machine in world.nodes.values():
        machine.lose_power()
    world.heal()
    wait(world, lambda: len(world.able()) == 3 and world.leading(CATALOG_GROUP) is not None)
    assert voters(world) == Voters(voters=(1, 2, 3))
    assert broker_of(world, 2).catalog.brokers.keys() == {1, 2, 3}
