"""A cluster that maintains itself: lost brokers are replaced, drained ones are emptied."""

from collections import Counter
from dataclasses import replace

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.cluster_config import ClusterConfig
from kafkaesque.config import BrokerConfig
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from tests.sim.test_broker_growth import join, pass_ms, wait
from tests.sim.test_broker_world import broker_of, create, leader_of, write

REPLACE_MS = 2_000


def a_world(brokers: int, *, moves_max: int = 10, auto_rebalance: bool = True) -> BrokerWorld:
    """A cluster with short timeouts, and one topic of six partitions on it."""
    cluster = ClusterConfig(
        look_ms=50,
        plan_ms=100,
        voter_replace_ms=REPLACE_MS,
        replica_replace_ms=REPLACE_MS,
        moves_max=moves_max,
        auto_rebalance=auto_rebalance,
    )
    config = BrokerConfig(cluster=cluster, groups=GroupConfig(offsets_partitions=2))
    world = BrokerWorld(1, BrokerSettings(brokers=brokers, voters=1, broker=config))
    wait(world, lambda: len(world.able()) == brokers)
    assert create(world, 1, "orders", partitions=6) is None
    wait(world, lambda: is_of_one_mind(world))
    return world


def topic(world: BrokerWorld, name: str = "orders") -> Topic:
    (machine, *_) = world.able()
    assert machine.broker is not None
    return machine.broker.committed_catalog.machine.topics[name]


def holds(world: BrokerWorld) -> Counter[NodeId]:
    return Counter(node for nodes in topic(world).replicas for node in nodes)


def drain(world: BrokerWorld, node: NodeId) -> None:
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(world.able()[0], lambda b: b.drain_broker(node, answers.append))
    wait(world, lambda: answers == [None])


def test_a_drained_broker_is_emptied_and_nothing_is_lost() -> None:
    world = a_world(4)
    assert holds(world)[2] > 0
    outcomes = write(world, "orders", 3)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    drain(world, 2)
    wait(world, lambda: holds(world)[2] == 0 and is_of_one_mind(world))
    assert [len(nodes) for nodes in topic(world).replicas] == [3] * 6
    leader = leader_of(world, "orders", 3)
    assert leader is not None
    assert broker_of(world, leader.node).partition("orders", 3).high_watermark == 1


@pytest.mark.complains("disk_full folder=simulated free_bytes=*")
@pytest.mark.event("moves_not_begun", "moves_begun")
def test_moves_blocked_by_a_full_disk_start_when_there_is_room() -> None:
    world = a_world(4)
    drain(world, 2)
    catalog = world.leading(CATALOG_GROUP)
    assert catalog is not None
    machine = world.nodes[catalog.raft.node]
    machine.disk.faults = replace(machine.disk.faults, full_at_bytes=machine.disk.used_bytes)
    wait(world, lambda: machine.events.counts["moves_not_begun"] > 0)
    machine.disk.faults = replace(machine.disk.faults, full_at_bytes=None)
    wait(world, lambda: holds(world)[2] == 0 and is_of_one_mind(world))


def test_the_replicas_of_a_lost_broker_are_replaced_after_the_delay_and_not_before() -> None:
    world = a_world(4)
    before = topic(world).replicas
    world.nodes[3].kill()
    pass_ms(world, REPLACE_MS // 2)
    assert topic(world).replicas == before
    assert not topic(world).moves
    wait(world, lambda: holds(world)[3] == 0 and not topic(world).moves)
    assert [len(nodes) for nodes in topic(world).replicas] == [3] * 6
    world.start(world.nodes[3])
    wait(world, lambda: is_of_one_mind(world))


@pytest.mark.event("moves_begun")
@pytest.mark.requirement("CORE-8")
def test_a_new_broker_gets_its_share_a_few_partitions_at_a_time() -> None:
    world = a_world(3, moves_max=2)
    most: list[int] = []
    world.on_acted = lambda _: most.append(len(topic(world).moves)) if world.able() else None
    new = join(world)
    wait(world, lambda: holds(world)[new] >= 4 and not topic(world).moves)
    assert 0 < max(most) <= 2
    assert max(holds(world).values()) - min(holds(world).values()) <= 1
    wait(world, lambda: is_of_one_mind(world))
    pass_ms(world, 2_000)
    assert not topic(world).moves


def test_a_new_broker_gets_no_partitions_where_rebalancing_is_off() -> None:
    world = a_world(3, auto_rebalance=False)
    new = join(world)
    pass_ms(world, 3_000)
    assert holds(world)[new] == 0
    assert not topic(world).moves


def test_internal_topics_grow_with_the_cluster() -> None:
    world = a_world(1)
    ready: list[KafkaesqueError | None] = []

    def ask(broker: Broker) -> None:
        broker.coordinators.when_ready(ready.append)

    world.ask_broker(world.nodes[1], ask)
    wait(world, lambda: ready == [None])
    name = "__consumer_offsets"
    assert topic(world, name).replicas == ((1,), (1,))
    join(world)
    wait(world, lambda: [len(nodes) for nodes in topic(world, name).replicas] == [2, 2])
    join(world)
    wait(world, lambda: [len(nodes) for nodes in topic(world, name).replicas] == [3, 3])
    assert {len(nodes) for nodes in topic(world).replicas} == {1}
    wait(world, lambda: is_of_one_mind(world))


def test_a_new_leader_of_the_catalog_continues_the_moves_of_the_last_one() -> None:
    world = a_world(5)
    drain(world, 4)
    wait(world, lambda: bool(topic(world).moves))
    leader = world.leading("cluster-metadata")
    assert leader is not None
    world.nodes[leader.raft.node].kill()
    wait(world, lambda: holds(world)[4] == 0 and not topic(world).moves)
