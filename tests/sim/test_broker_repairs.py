"""Damaged copies in a cluster are repaired from whole ones, and nothing is lost."""

from dataclasses import replace

import pytest

from kafkaesque.ages import Ages
from kafkaesque.broker.broker import Broker
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.config import BrokerConfig, HousekeepingConfig, LogConfig
from kafkaesque.errors import KafkaesqueError
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.errors import CorruptLog
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_rot import Rotting, closed_segments, is_sound
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.many import Kind
from kafkaesque.types import NodeId
from tests.sim.seeds import play_seeds
from tests.sim.test_broker_world import broker_of, create, leader_of, takes, wait, write

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.complains("damage_found partition=*", "repair_failed partition=*"),
]

QUICK = HousekeepingConfig(repair_look_ms=50, repair_retry_ms=200, repair_piece_bytes_max=200)
SETTINGS = BrokerSettings(
    log=LogConfig(index_interval_bytes=200),
    broker=BrokerConfig(housekeeping=QUICK),
)
RECORDS = 80


def filled_world(settings: BrokerSettings = SETTINGS) -> BrokerWorld:
    """Three brokers with one partition of several segments."""
    world = BrokerWorld(1, settings)
    wait(world, lambda: len(world.able()) == 3)
    assert create(world, 1, "orders", 1, settings={"segment.bytes": "1024"}) is None
    wait(world, lambda: is_of_one_mind(world))
    for _ in range(RECORDS):
        write_one(world)
    wait(world, lambda: is_of_one_mind(world))
    wait(world, lambda: all(len(closed_segments(copy(world, node))) > 4 for node in world.nodes))
    return world


def write_one(world: BrokerWorld) -> None:
    """Write a record, and another one if leadership was lost before the first was committed."""
    outcomes: list[Outcome] = [Outcome.UNKNOWN]
    while outcomes == [Outcome.UNKNOWN]:
        wait(world, lambda: takes(world, "orders"))
        outcomes = write(world, "orders")
        wait(world, lambda: bool(outcomes))  # noqa: B023 - it is over before the next turn
    assert outcomes == [Outcome.COMMITTED]


def copy(world: BrokerWorld, node: NodeId, name: str = "orders") -> Replica:
    broker = broker_of(world, node)
    return broker.replicas.by_group[group_of(broker.catalog.topics[name], 0)]


def are_repaired(world: BrokerWorld, rotting: Rotting) -> bool:
    return rotting.look_through() and is_of_one_mind(world)


@pytest.mark.event("repair_begun", "repair_done")
def test_two_copies_damaged_in_different_places_repair_each_other() -> None:
    world = filled_world()
    rotting = Rotting(world)
    for node, place in ((1, 1), (2, 3)):
        replica = copy(world, node)
        segment, end = closed_segments(replica)[place]
        world.nodes[node].disk.flip_bit(segment.path, 100, 2)
        rotting.note(replica, segment, end)
    write_one(world)
    wait(world, lambda: are_repaired(world, rotting))
    for node in world.nodes:
        replica = copy(world, node)
        assert not replica.damage.found and replica.raft.may_lead
        world.groups[replica.group].holds_everything(replica)
    assert broker_of(world, 1).repairs.done and broker_of(world, 2).repairs.done
    write_one(world)


def test_a_copy_that_lost_a_file_restores_it() -> None:
    world = filled_world()
    rotting = Rotting(world)
    machine = world.nodes[2]
    replica = copy(world, 2)
    segment, end = closed_segments(replica)[2]
    rotting.note(replica, segment, end)
    machine.kill()
    for suffix in (".log", ".index", ".timeindex"):
        machine.disk.remove(segment.stem + suffix)
    world.start(machine)
    wait(world, lambda: machine.is_ready)
    wait(world, lambda: are_repaired(world, rotting))
    world.groups[replica.group].holds_everything(copy(world, 2))
    assert segment.base in copy(world, 2).log.segments.bases


def test_damage_stays_noted_until_the_repair_is_durable() -> None:
    """The power fails at each disk operation of a repair in turn."""
    world = filled_world()
    machine = world.nodes[2]
    begun = 0
    for operation in range(1, 30):
        rotting = Rotting(world)
        replica = copy(world, 2)
        segment, end = closed_segments(replica)[1]
        place = segment.base, end
        rotting.note(replica, segment, end)
        machine.disk.flip_bit(segment.path, 80, 3)
        wait(world, lambda at=end: copy(world, 2).settled_offset >= at)  # type: ignore[misc]
        assert not rotting.look_through()
        repairs = broker_of(world, 2).repairs
        before = repairs.begun
        wait(world, lambda r=repairs, b=before: r.begun > b)  # type: ignore[misc]
        begun += 1
        machine.disk.crash_after = machine.disk.operations + operation
        wait(world, lambda: not machine.is_up or not copy(world, 2).damage.found)
        world.heal()
        wait(world, lambda: machine.is_ready and has_copy(world, 2, "orders"))
        replica = copy(world, 2)
        assert replica.damage.found or is_sound(replica, *place), operation
        wait(world, lambda r=rotting: are_repaired(world, r))  # type: ignore[misc]
    assert begun == 29


def test_all_closed_segments_of_a_compacted_log_are_fetched_from_one_peer() -> None:
    """A value that one copy still has must not outlive the tombstone that another has removed."""
    world = filled_world()
    group = copy(world, 1).group
    world.groups[group].is_compacted = True
    leader = world.leading(group)
    assert leader is not None
    for key in (b"a", b"b", b"a", b"b") * 20:
        write_key(world, leader, key)
    wait(world, lambda: is_of_one_mind(world))
    wait(world, lambda: len(closed_segments(copy(world, 3))) > 8)
    compact_copy(world, leader)
    node = next(n for n in world.nodes if n != leader.raft.node)
    replica = copy(world, node)
    rotting = Rotting(world)
    segment, end = closed_segments(replica)[0]
    rotting.note(replica, segment, end)
    world.nodes[node].disk.flip_bit(segment.path, 80, 3)
    other = next(n for n in world.nodes if n not in (node, leader.raft.node))
    world.nodes[other].kill()  # so that the leader is asked
    wait(world, lambda: rotting.look_through())
    assert replica.has_holes and not replica.damage.found
    assert batches(replica) == batches(leader)
    world.heal()
    wait(world, lambda: is_of_one_mind(world))


def write_key(world: BrokerWorld, leader: Replica, key: bytes) -> None:
    outcomes: list[Outcome] = []
    record = Record(offset=0, timestamp_ms=world.clock.now_ms(), key=key, value=b"x" * 50)

    def ask(broker: Broker) -> None:
        batch = memoryview(bytearray(build_batch([record])))
        broker.partition("orders", 0).append(batch, outcomes.append)

    world.ask_broker(world.nodes[leader.raft.node], ask)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])


def compact_copy(world: BrokerWorld, replica: Replica) -> None:
    """Compact only one copy."""
    machine = world.nodes[replica.raft.node]
    world.act(machine, replica.log.allow_holes)
    wait(world, lambda: replica.log.has_noted_holes)
    below = min(replica.settled_offset, replica.log.compactable_below)
    size = replica.log.segments.size_bytes
    rules = CompactionRules()
    work = compact(
        replica.log.segments, below=below, ages=Ages(now_ms=world.clock.now_ms()), rules=rules
    )
    wait(world, lambda: next(work, None) is None)
    assert replica.log.segments.size_bytes < size


def batches(replica: Replica) -> list[bytes]:
    """Everything in the closed segments of a log."""
    found = []
    for base in replica.log.segments.bases[:-1]:
        segment, _ = replica.log.segments.span(base)
        found += [bytes(view.data) for view in segment.batches()]
    return found


def test_a_log_that_cannot_be_repaired_yet_does_not_block_others() -> None:
    world = BrokerWorld(1, replace(SETTINGS, brokers=5, voters=3))
    wait(world, lambda: len(world.able()) == 5)
    create_at(world, "first", (3, 4, 5))
    create_at(world, "second", (3, 1, 2))
    for name in ("first", "second"):
        wait(world, lambda at=name: leader_of(world, at) is not None)  # type: ignore[misc]
        for _ in range(RECORDS):
            outcomes = write(world, name)
            wait(world, lambda told=outcomes: told == [Outcome.COMMITTED])  # type: ignore[misc]
    wait(world, lambda: is_of_one_mind(world))
    rotting = Rotting(world)
    machine = world.nodes[3]
    for name in ("first", "second"):
        replica = copy(world, 3, name)
        wait(world, lambda r=replica: len(closed_segments(r)) > 2)  # type: ignore[misc]
        segment, end = closed_segments(replica)[1]
        rotting.note(replica, segment, end)
        machine.disk.flip_bit(segment.path, 80, 3)
    for node in (4, 5):
        world.nodes[node].kill()
    assert not rotting.look_through()
    machine.kill()  # so that it does not know the first one's commit any more
    world.start(machine)
    wait(world, lambda: machine.is_ready and has_copy(world, 3, "second"))
    assert copy(world, 3, "first").damage.found
    wait(world, lambda: not copy(world, 3, "second").damage.found)
    assert copy(world, 3, "first").damage.found
    world.heal()
    wait(world, lambda: are_repaired(world, rotting))


@pytest.mark.event("repair_failed")
def test_damage_that_no_peer_can_repair_is_reported_with_the_reason() -> None:
    world = filled_world()
    for node in (2, 3):
        world.nodes[node].kill()
    machine, replica = world.nodes[1], copy(world, 1)
    segment, _ = closed_segments(replica)[1]
    error = CorruptLog(segment.path, 100, "a bit flipped", offset=segment.base)
    world.act(machine, lambda: replica.damaged(error, segment.base))
    wait(world, lambda: machine.events.counts["repair_failed"] > 0)


def create_at(world: BrokerWorld, name: str, nodes: tuple[NodeId, ...]) -> None:
    answers: list[KafkaesqueError | None] = []

    def ask(broker: Broker) -> None:
        settings = {"segment.bytes": "1024"}
        broker.create_topic(name, 1, settings, answers.append, assignment=[nodes])

    world.ask_broker(world.nodes[1], ask)
    wait(world, lambda: answers == [None])


def has_copy(world: BrokerWorld, node: NodeId, name: str) -> bool:
    return any(group.startswith(name) for group in broker_of(world, node).replicas.by_group)


def test_a_leader_that_reads_its_damage_steps_down_is_repaired_and_may_lead_again() -> None:
    world = filled_world()
    rotting = Rotting(world)
    leader = world.leading(copy(world, 1).group)
    assert leader is not None
    node = leader.raft.node
    segment, end = closed_segments(leader)[0]
    world.nodes[node].disk.flip_bit(segment.path, 70, 1)
    rotting.note(leader, segment, end)
    rotting.look_through()
    assert leader.raft.leadership is None
    wait(world, lambda: are_repaired(world, rotting))
    assert copy(world, node).raft.may_lead
    wait(world, lambda: copy(world, node).is_serving)


def test_damage_to_any_minority_is_found_and_repaired() -> None:
    assert play_seeds(Kind.ROT, [9, 21])["segments damaged"] > 0


def test_a_broker_that_meets_damage_while_moving_a_partition_carries_on_with_the_others() -> None:
    """The only copy of a partition gets more replicas; one of its bits has flipped, undetected."""
    world = BrokerWorld(1, SETTINGS)
    wait(world, lambda: len(world.able()) == 3)
    small = {"segment.bytes": "1024"}
    assert create(world, 1, "orders", 1, replication=1, settings=small) is None
    assert create(world, 1, "others", 3, replication=3) is None
    wait(world, lambda: leader_of(world, "orders") is not None)
    for _ in range(RECORDS):
        write_one(world)
    machine = leader_of(world, "orders")
    assert machine is not None
    lone = copy(world, machine.node)
    machine.disk.flip_bit(closed_segments(lone)[1][0].path, 70, 2)
    topic = broker_of(world, machine.node).catalog.topics["orders"]
    nodes = [machine.node, *(node for node in world.nodes if node != machine.node)]
    answers: list[KafkaesqueError | None] = []

    def grow(broker: Broker) -> None:
        broker.move_partitions([(topic.topic_id, 0, nodes)], answers.append)

    world.ask_broker(machine, grow)
    wait(world, lambda: answers == [None] and bool(lone.damage.found))
    broker = broker_of(world, machine.node)
    until = world.clock.time + 2_000
    wait(world, lambda: world.clock.time >= until)
    (move,) = broker.moves()
    assert move.behind and all(behind.bytes for behind in move.behind.values())
    assert lone.is_serving and not lone.raft.voters.voters[1:]
    write_one(world)
    for index in range(3):
        outcomes = write(world, "others", index)
        wait(world, lambda o=outcomes: o == [Outcome.COMMITTED])  # type: ignore[misc]
    assert create(world, machine.node, "later", 1) is None


def test_a_broker_with_a_damaged_catalog_steps_down_and_is_repaired() -> None:
    world = filled_world()
    wait(world, lambda: world.leading(CATALOG_GROUP) is not None)
    led = world.leading(CATALOG_GROUP)
    assert led is not None
    node = next(n for n in world.nodes if n != led.raft.node)
    broker = broker_of(world, node)
    replica = broker.replicas.by_group[CATALOG_GROUP]
    segment, end = replica.log.segments.span(replica.log.start.offset)
    rotting = Rotting(world)
    rotting.note(replica, segment, end)
    wait(world, lambda: replica.settled_offset == replica.log.end_offset)
    world.nodes[node].disk.flip_bit(segment.path, segment.size // 2, 3)
    leader = next(m for m in world.able() if m.node == led.raft.node)
    world.ask_broker(leader, lambda b: b.replicas.by_group[CATALOG_GROUP].transfer(node))
    wait(world, lambda: bool(replica.damage.found))
    wait(world, lambda: not replica.damage.found and are_repaired(world, rotting))
    assert world.nodes[node].broker is broker, "it ran all the time"
    assert broker.repairs.done and replica.raft.may_lead
    assert create(world, node, "later", 1) is None
