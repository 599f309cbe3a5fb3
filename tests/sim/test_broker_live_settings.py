"""Broker settings changed at run time apply on each broker, and survive crashes."""

from collections.abc import Mapping

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.broker_settings import ALL_BROKERS
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from tests.sim.test_broker_care import REPLACE_MS, holds, topic
from tests.sim.test_broker_care import a_world as a_caring_world
from tests.sim.test_broker_growth import join, pass_ms, wait
from tests.sim.test_broker_moves import (
    a_world,
    fill,
    is_settled,
    most_that_catch_up_at_once,
    move,
    orders,
    with_moves,
)
from tests.sim.test_broker_world import broker_of

RETENTION, REPLACE = "log.retention.ms", "cluster.replica_replace_ms"
RATE = "leader.replication.throttled.rate"


def put(world: BrokerWorld, node: NodeId, settings: Mapping[str, str], through: int = 0) -> None:
    """Set something for one broker or for all, through a broker that is up."""
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(
        world.able()[through],
        lambda b: b.set_broker_settings(node, settings, answers.append),
    )
    wait(world, lambda: answers == [None])


def retention_ms(world: BrokerWorld, node: NodeId) -> int:
    return broker_of(world, node).live.defaults.retention_ms


def test_a_setting_applies_on_every_broker_also_after_all_were_killed() -> None:
    world = a_world()
    put(world, ALL_BROKERS, {RETENTION: "5000"}, through=1)
    put(world, 2, {RETENTION: "7000"}, through=2)
    wait(world, lambda: is_of_one_mind(world))
    expected = {node: 7000 if node == 2 else 5000 for node in world.nodes}
    wait(world, lambda: {node: retention_ms(world, node) for node in world.nodes} == expected)
    held = broker_of(world, 3).partition("orders", 0).settings
    assert held.retention_ms == 5000, "open partitions follow"
    for machine in world.nodes.values():
        machine.kill()
    for machine in world.nodes.values():
        world.start(machine)
    wait(world, lambda: len(world.able()) == len(world.nodes) and is_of_one_mind(world))
    assert {node: retention_ms(world, node) for node in world.nodes} == expected
    assert broker_of(world, 2).partition("orders", 0).settings.retention_ms == 7000


def test_a_setting_survives_the_loss_of_the_leader_of_the_catalog() -> None:
    world = a_world()
    put(world, ALL_BROKERS, {RETENTION: "5000"})
    leader = broker_of(world, 1).leader_of(CATALOG_GROUP).node
    assert leader is not None
    world.nodes[leader].kill()
    others = [node for node in world.nodes if node != leader]
    wait(world, lambda: broker_of(world, others[0]).leader_of(CATALOG_GROUP).node in others)
    wait(world, lambda: all(retention_ms(world, node) == 5000 for node in others))
    put(world, ALL_BROKERS, {})
    world.start(world.nodes[leader])
    wait(world, lambda: len(world.able()) == len(world.nodes) and is_of_one_mind(world))
    day_ms = 24 * 3600 * 1000
    wait(world, lambda: all(retention_ms(world, node) == 7 * day_ms for node in world.nodes))


def test_a_higher_rate_finishes_a_move_that_a_low_one_delays() -> None:
    world = a_world([[1]], with_moves(catch_up_bytes_per_second=400))
    put(world, ALL_BROKERS, {RATE: "1"})
    fill(world, 40)
    assert move(world, [2]) is None
    pass_ms(world, 20_000)
    assert orders(world).moves, "at 400 bytes per second it would be done"
    put(world, 1, {RATE: str(32 << 20)})
    began = world.clock.time
    wait(world, lambda: is_settled(world))
    assert world.clock.time - began < 5_000


def test_no_more_partitions_catch_up_at_once_than_is_set() -> None:
    world = a_world([[1]] * 4, with_moves(catch_up_bytes_per_second=200))
    put(world, 1, {"moves.moves_max": "1"})
    assert most_that_catch_up_at_once(world) == 1


def test_replicas_of_a_lost_broker_are_replaced_after_the_delay_that_is_set() -> None:
    world = a_caring_world(4)
    put(world, ALL_BROKERS, {REPLACE: "1000000"})
    before = topic(world).replicas
    world.nodes[3].kill()
    pass_ms(world, 3 * REPLACE_MS)
    assert topic(world).replicas == before
    put(world, ALL_BROKERS, {})
    wait(world, lambda: holds(world)[3] == 0 and not topic(world).moves)


def test_a_new_broker_gets_its_share_once_that_is_enabled_a_few_at_a_time() -> None:
    world = a_caring_world(3, auto_rebalance=False)
    put(world, ALL_BROKERS, {"cluster.moves_max": "2"})
    most: list[int] = []
    world.on_acted = lambda _: most.append(len(topic(world).moves)) if world.able() else None
    new = join(world)
    pass_ms(world, 3_000)
    assert holds(world)[new] == 0
    put(world, ALL_BROKERS, {"cluster.moves_max": "2", "cluster.auto_rebalance": "true"})
    wait(world, lambda: holds(world)[new] >= 4 and not topic(world).moves)
    assert 0 < max(most) <= 2
