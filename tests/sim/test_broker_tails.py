"""A disk that loses the synced end of a log: the leader notices."""

import pytest

from kafkaesque.broker.problems import ProblemKind, problems
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_tails import LosingTails
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.many import Kind
from kafkaesque.types import NodeId
from tests.sim.seeds import play_seeds
from tests.sim.test_broker_growth import pass_ms
from tests.sim.test_broker_world import broker_of, create, leader_of, ready_world, wait, write

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.complains("tail_lost partition=* offset=*: the disk lost synced *"),
]

RECORDS = 3


def a_world() -> BrokerWorld:
    world = ready_world()
    assert create(world, 1, "orders", partitions=1) is None
    wait(world, lambda: is_of_one_mind(world))
    for _ in range(RECORDS):
        outcomes = write(world, "orders", 0)
        wait(world, lambda outcomes=outcomes: outcomes == [Outcome.COMMITTED])  # type: ignore[misc]
    pass_ms(world, 1_000)
    return world


def lose_tail(world: BrokerWorld) -> NodeId:
    """Restart a follower without some records, and all others with what they have."""
    leader = leader_of(world, "orders", 0)
    assert leader is not None
    node = next(node for node in world.nodes if node != leader.node)
    group = group_of(broker_of(world, node).catalog.topics["orders"], 0)
    machine = world.nodes[node]
    machine.kill()
    assert LosingTails(world).lose(machine, group)
    world.start(machine)
    return node


def is_recovering(world: BrokerWorld, node: NodeId) -> bool:
    broker = world.nodes[node].broker
    if broker is None or not world.nodes[node].is_ready:
        return False
    return broker.partition("orders", 0).replica.raft.is_recovering


def has_all(world: BrokerWorld, node: NodeId) -> bool:
    broker = world.nodes[node].broker
    if broker is None or not world.nodes[node].is_ready or is_recovering(world, node):
        return False
    return broker.partition("orders", 0).high_watermark == RECORDS


@pytest.mark.event("tail_lost", "replica_recovered")
def test_a_replica_that_lost_its_tail_is_refilled_and_reports_it() -> None:
    world = a_world()
    node = lose_tail(world)
    wait(world, lambda: has_all(world, node))
    (found,) = [
        one for one in problems(broker_of(world, node)) if one.kind is ProblemKind.TAIL_LOST
    ]
    assert "orders-0 from offset" in found.text
    outcomes = write(world, "orders", 0)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])


def test_it_does_not_vote_before_it_is_refilled_also_after_a_restart() -> None:
    world = a_world()
    node = lose_tail(world)
    wait(world, lambda: is_recovering(world, node))
    others = [other for other in world.nodes if other != node]
    for other in others:
        world.nodes[other].kill()
    pass_ms(world, 500)
    world.nodes[node].lose_power()
    world.start(world.nodes[node])
    world.start(world.nodes[others[0]])
    wait(world, lambda: is_recovering(world, node) or has_all(world, node))
    world.start(world.nodes[others[1]])
    wait(world, lambda: has_all(world, node))


@pytest.mark.complains("old_copy_lacks partition=*: the partition's data cannot be fetched again")
def test_nothing_is_lost_to_disks_that_lose_synced_data() -> None:
    counts = play_seeds(Kind.TAILS, [4, 11, 21])
    assert counts["tails lost"] > 0
    assert counts["journals lost"] > 0
