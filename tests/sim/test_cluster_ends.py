"""What a leader answers to fetches beyond its end, on simulated brokers (bug class B19)."""

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.replication.end_proof import GIVEN_UP_MS, QUESTIONS_MAX
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import KafkaesqueError, NotLeader
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId, Offset
from tests.sim.test_broker_world import broker_of, wait
from tests.sim.test_cluster_acks import RAFT, a_world, cut_off, leading, ticks, write


def partition_at(world: BrokerWorld, node: NodeId) -> Partition:
    return broker_of(world, node).partition("orders", 0)


def refusal(world: BrokerWorld, node: NodeId, offset: Offset) -> KafkaesqueError:
    def read(broker: Broker) -> None:
        broker.partition("orders", 0).read(offset, 1 << 16)

    with pytest.raises(KafkaesqueError) as raised:
        world.ask_broker(world.nodes[node], read)
    return raised.value


def test_a_deposed_leader_never_reports_a_committed_offset_as_out_of_range() -> None:
    world = a_world()
    old = leading(world)
    cut_off(world, old.node)
    others = [node for node in world.nodes if node != old.node]
    for node in others:
        world.ask_broker(world.nodes[node], lambda b: b.suspect(old.node))

    def elected() -> list[NodeId]:
        return [node for node in others if partition_at(world, node).replica.is_serving]

    wait(world, lambda: bool(elected()))
    outcomes: list[Outcome] = []
    write(world, world.nodes[elected()[0]], outcomes)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    assert partition_at(world, old.node).replica.is_serving, "it does not know yet"
    refusals: list[KafkaesqueError] = []

    def steps_down() -> bool:
        refusals.append(refusal(world, old.node, 1))
        return not partition_at(world, old.node).replica.is_serving

    wait(world, steps_down)
    assert {type(error) for error in refusals} == {NotLeader}
    assert len(refusals) > RAFT.heartbeat_ticks


def test_a_fetch_beyond_the_end_of_a_sound_leader_is_out_of_range_within_two_timeouts() -> None:
    world = a_world()
    leader = leading(world)
    wait(world, lambda: partition_at(world, leader.node).replica.raft.is_resting)
    began = world.clock.time
    assert isinstance(refusal(world, leader.node, 5), NotLeader), "not sure yet"
    wait(world, lambda: isinstance(refusal(world, leader.node, 5), OffsetOutOfRange))
    taken = (world.clock.time - began) // world.settings.tick_ms
    assert RAFT.election_ticks <= taken <= 2 * RAFT.election_ticks
    assert isinstance(refusal(world, leader.node, 5), NotLeader), "the next one has to wait again"


def test_an_abandoned_fetch_does_not_shorten_the_wait_of_the_next() -> None:
    world = a_world()
    leader = leading(world)
    assert isinstance(refusal(world, leader.node, 1_000), NotLeader)
    begun = world.clock.time
    while world.clock.time - begun <= GIVEN_UP_MS:  # a resting group would have no ticks
        write(world, leader, [])
        wait(world, ticks(world, RAFT.heartbeat_ticks))
    assert isinstance(refusal(world, leader.node, 1_000), NotLeader)


def test_no_more_fetches_are_remembered_than_allowed() -> None:
    world = a_world()
    leader = leading(world)
    for offset in range(5, 5 + QUESTIONS_MAX + 1):
        assert isinstance(refusal(world, leader.node, offset), NotLeader)
    last = 5 + QUESTIONS_MAX
    wait(world, lambda: isinstance(refusal(world, leader.node, last), OffsetOutOfRange))
    assert isinstance(refusal(world, leader.node, 6), OffsetOutOfRange)
    assert isinstance(refusal(world, leader.node, 5), NotLeader), "the oldest was forgotten"
