"""What acknowledgement and being in sync mean with several simulated brokers."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition_errors import NotEnoughReplicas, OffsetNotAvailable
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.config import BrokerConfig, RaftConfig
from kafkaesque.errors import KafkaesqueError, NotLeader
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.settings import NetworkFaults
from kafkaesque.types import NodeId
from tests.sim.test_broker_world import broker_of, leader_of, wait

RAFT = RaftConfig()


def a_world(
    min_insync: int = 1, brokers: int = 3, partitions: int = 1, raft: RaftConfig = RAFT
) -> BrokerWorld:
    """A cluster at rest with a topic of three replicas and this min.insync.replicas."""
    settings = BrokerSettings(
        brokers=brokers,
        broker=BrokerConfig(raft=raft),
        network=NetworkFaults(delay_max=1, drop_rate=0.0, duplicate_rate=0.0, late_rate=0.0),
    )
    world = BrokerWorld(1, settings)
    wait(world, lambda: len(world.able()) == brokers)
    answers: list[KafkaesqueError | None] = []

    def ask(broker: Broker) -> None:
        wanted = {"min.insync.replicas": str(min_insync)}
        broker.create_topic("orders", partitions, wanted, answers.append, replication=3)

    world.ask_broker(world.nodes[1], ask)
    wait(world, lambda: bool(answers))
    assert answers == [None]
    wait(world, lambda: is_of_one_mind(world))
    return world


def leading(world: BrokerWorld) -> BrokerNode:
    leader = leader_of(world, "orders")
    assert leader is not None
    return leader


def followers(world: BrokerWorld) -> list[BrokerNode]:
    leader = leading(world)
    replicas = broker_of(world, leader.node).catalog.topics["orders"].replicas[0]
    return [world.nodes[node] for node in replicas if node != leader.node]


def write(world: BrokerWorld, machine: BrokerNode, outcomes: list[Outcome]) -> None:
    """Write one record to a broker with acks=all."""
    record = Record(offset=0, timestamp_ms=world.clock.now_ms(), key=None, value=b"x")
    batch = memoryview(bytearray(build_batch([record])))
    world.ask_broker(
        machine,
        lambda b: b.partition("orders", 0).append(batch, outcomes.append, needs_all=True) and None,
    )


def in_sync(world: BrokerWorld, node: NodeId) -> set[NodeId]:
    broker = broker_of(world, node)
    topic = broker.catalog.topics.get("orders")  # not yet known to one that has just started
    return set() if topic is None else set(broker.leaders.in_sync(group_of(topic, 0)))


def cut_off(world: BrokerWorld, node: NodeId) -> None:
    for other in world.nodes:
        if other != node:
            world.network.cut(node, other)
            world.network.cut(other, node)


def ticks(world: BrokerWorld, count: int) -> Callable[[], bool]:
    end = world.clock.time + count * world.settings.tick_ms
    return lambda: world.clock.time >= end


# ── acknowledgement ──────────────────────────────────────────────────────────────────────────


def test_acks_all_waits_for_as_many_copies_as_the_topic_requires() -> None:
    world = a_world(min_insync=3)
    leader, slow = leading(world), followers(world)[1]
    world.network.cut(leader.node, slow.node)
    outcomes: list[Outcome] = []
    write(world, leader, outcomes)
    partition = broker_of(world, leader.node).partition("orders", 0)
    wait(world, lambda: partition.high_watermark == 1)
    assert outcomes == [], "two of three have it and it is committed, but three are required"
    world.network.heal()
    wait(world, lambda: outcomes == [Outcome.COMMITTED])


def test_a_majority_is_enough_where_no_more_is_required() -> None:
    world = a_world(min_insync=2)
    followers(world)[1].kill()
    outcomes: list[Outcome] = []
    write(world, leading(world), outcomes)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])


def test_consumers_see_committed_records_although_their_producer_still_waits() -> None:
    world = a_world(min_insync=3)
    leader = leading(world)
    world.network.cut(leader.node, followers(world)[1].node)
    outcomes: list[Outcome] = []
    write(world, leader, outcomes)
    partition = broker_of(world, leader.node).partition("orders", 0)
    wait(world, lambda: partition.high_watermark == 1)
    assert bytes(partition.read(0, 1 << 16))
    assert outcomes == []


def test_with_too_few_in_sync_acks_all_is_refused_at_once_and_acks_one_is_not() -> None:
    world = a_world(min_insync=3)
    leader, dead = leading(world), followers(world)[1]
    dead.kill()
    wait(world, lambda: dead.node not in in_sync(world, leader.node))
    end = broker_of(world, leader.node).partition("orders", 0).replica.log.end_offset
    with pytest.raises(NotEnoughReplicas):
        write(world, leader, [])
    partition = broker_of(world, leader.node).partition("orders", 0)
    assert partition.replica.log.end_offset == end
    record = Record(offset=0, timestamp_ms=world.clock.now_ms(), key=None, value=b"x")
    outcomes: list[Outcome] = []
    batch = memoryview(bytearray(build_batch([record])))
    world.ask_broker(
        leader, lambda b: b.partition("orders", 0).append(batch, outcomes.append) and None
    )
    wait(world, lambda: outcomes == [Outcome.COMMITTED])


def test_waiting_producers_are_answered_when_too_few_replicas_stay_in_sync() -> None:
    world = a_world(min_insync=3)
    leader, dead = leading(world), followers(world)[1]
    dead.kill()
    outcomes: list[Outcome] = []
    write(world, leader, outcomes)
    wait(world, lambda: bool(outcomes))
    assert outcomes == [Outcome.TOO_FEW]
    assert broker_of(world, leader.node).partition("orders", 0).high_watermark == 1


def test_an_isolated_leader_refuses_writes_as_soon_as_it_notices() -> None:
    world = a_world()
    leader = leading(world)
    outcomes: list[Outcome] = []
    cut_off(world, leader.node)
    write(world, leader, outcomes)
    refusals: set[type[KafkaesqueError]] = set()

    def is_refused() -> bool:
        try:
            write(world, leader, outcomes)
        except (NotEnoughReplicas, NotLeader) as error:
            refusals.add(type(error))
        return NotLeader in refusals

    wait(world, is_refused)
    assert NotEnoughReplicas in refusals
    assert set(outcomes) == {Outcome.UNKNOWN}


# ── in sync ──────────────────────────────────────────────────────────────────────────────────


def test_dead_brokers_are_out_of_sync_even_in_a_resting_group() -> None:
    world = a_world()
    dead = followers(world)[0]
    alive = [node for node in world.nodes if node != dead.node]
    replica = broker_of(world, leading(world).node).partition("orders", 0).replica
    wait(world, lambda: replica.raft.is_resting)
    dead.kill()
    wait(world, ticks(world, 2 * (RAFT.election_ticks + RAFT.heartbeat_ticks)))
    for node in alive:
        assert in_sync(world, node) == set(alive)
    world.start(dead)
    wait(world, lambda: all(in_sync(world, node) == set(world.nodes) for node in world.nodes))


def test_a_follower_that_does_not_keep_up_is_out_of_sync() -> None:
    world = a_world(raft=RaftConfig(lag_ticks_max=20))
    leader, slow = leading(world), followers(world)[0]
    replica = broker_of(world, leader.node).partition("orders", 0).replica
    slow.disk.faults = replace(slow.disk.faults, sync_delay_max=100_000)
    write(world, leader, [])
    wait(world, ticks(world, 15))
    replica.look_in_sync()
    assert replica.in_sync is not None
    assert slow.node in replica.in_sync.nodes, "its lag is still within bounds"
    wait(world, ticks(world, 30))
    assert slow.node not in replica.in_sync.nodes
    assert not replica.in_sync.is_cut_off


def test_a_suspect_is_out_of_sync_at_once_and_back_with_its_next_beat() -> None:
    world = a_world()
    leader, other = leading(world), followers(world)[0]
    world.ask_broker(leader, lambda b: b.suspect(other.node))
    assert other.node not in in_sync(world, leader.node)
    wait(world, lambda: in_sync(world, leader.node) == set(world.nodes))


# ── followers ────────────────────────────────────────────────────────────────────────────────


def test_a_follower_serves_what_it_knows_to_be_committed_and_no_more() -> None:
    world = a_world()
    leader, follower = leading(world), followers(world)[0]
    outcomes: list[Outcome] = []
    write(world, leader, outcomes)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    copy = broker_of(world, follower.node).partition("orders", 0)
    wait(world, lambda: copy.high_watermark == 1)
    # The other follower gets nothing more, so that nothing more is committed.
    other = followers(world)[1]
    other.kill()
    world.network.cut(follower.node, leader.node)
    write(world, leader, outcomes)
    wait(world, lambda: copy.replica.log.end_offset == 2)
    assert copy.high_watermark == 1
    first = bytes(copy.read_as_follower(0, 1 << 16))
    assert first == bytes(broker_of(world, leader.node).partition("orders", 0).read(0, 1 << 16))
    assert bytes(copy.read_as_follower(1, 1 << 16)) == b""
    with pytest.raises(OffsetNotAvailable):
        copy.read_as_follower(2, 1 << 16)
    with pytest.raises(OffsetOutOfRange):
        copy.read_as_follower(3, 1 << 16)


def test_a_follower_without_a_leader_serves_nothing() -> None:
    world = a_world()
    follower = followers(world)[0]
    cut_off(world, follower.node)
    copy = broker_of(world, follower.node).partition("orders", 0)
    wait(world, lambda: copy.replica.raft.leader is None)
    with pytest.raises(NotLeader):
        copy.read_as_follower(0, 1 << 16)


# ── elections and transfers of leadership ────────────────────────────────────────────────────


def test_a_suspected_leader_is_replaced_long_before_a_timeout() -> None:
    world = a_world()
    first = leading(world)
    first.kill()
    wait(
        world, ticks(world, 1)
    )  # a link is lost when everything that arrived over it has been read
    begun = world.clock.time
    for machine in world.able():
        world.ask_broker(machine, lambda b: b.suspect(first.node))
    wait(world, lambda: leader_of(world, "orders") not in (None, first))
    taken = (world.clock.time - begun) // world.settings.tick_ms
    assert taken < RAFT.election_ticks, f"{taken} ticks"


def test_the_next_preferred_replica_leads_after_a_loss() -> None:
    world = a_world(partitions=6)
    replicas = broker_of(world, 1).catalog.topics["orders"].replicas
    world.nodes[1].kill()
    for machine in world.able():
        world.ask_broker(machine, lambda b: b.suspect(1))

    def leaders() -> list[NodeId | None]:
        found = [leader_of(world, "orders", index) for index in range(6)]
        return [None if one is None else one.node for one in found]

    wait(world, lambda: not {None, 1} & set(leaders()))
    wanted = [next(node for node in nodes if node != 1) for nodes in replicas]
    assert leaders() == wanted


def test_a_clean_stop_transfers_all_leadership_first() -> None:
    world = a_world(partitions=9)
    machine = world.nodes[1]
    done: list[bool] = []
    world.ask_broker(machine, lambda b: b.hand_over(lambda: done.append(True)))
    wait(world, lambda: bool(done))
    led = [r for r in broker_of(world, 1).replicas.by_group.values() if r.raft.leadership]
    assert led == []
    wait(world, lambda: world.leading(CATALOG_GROUP) is not None)
    assert all(leader_of(world, "orders", index) is not machine for index in range(9))


def test_a_transfer_that_cannot_succeed_ends_in_time() -> None:
    world = a_world(raft=RaftConfig(hand_over_ticks=7))
    leader = leading(world)
    for machine in followers(world):
        machine.kill()
    done: list[int] = []
    begun = world.clock.time
    world.ask_broker(leader, lambda b: b.hand_over(lambda: done.append(world.clock.time)))
    wait(world, lambda: bool(done))
    assert done[0] - begun <= 9 * world.settings.tick_ms
