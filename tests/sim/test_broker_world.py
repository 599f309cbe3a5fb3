"""Several brokers as one cluster: changes through any of them, failover, and answers."""

from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition_errors import NotHere
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import KafkaesqueError, NotLeader, OutcomeUnknown, TopicExists
from kafkaesque.log.errors import DiskFailed
from kafkaesque.machines.catalog.catalog_errors import SettingsChanged
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId

STEPS_MAX = 40_000


def wait(world: BrokerWorld, is_done: Callable[[], bool]) -> None:
    assert world.run_until(is_done, STEPS_MAX), "the condition never holds"


def ready_world(brokers: int = 3, voters: int = 3, racks: int = 1) -> BrokerWorld:
    world = BrokerWorld(1, BrokerSettings(brokers=brokers, voters=voters, racks=racks))
    wait(world, lambda: len(world.able()) == brokers)
    return world


def broker_of(world: BrokerWorld, node: NodeId) -> Broker:
    broker = world.nodes[node].broker
    assert broker is not None
    return broker


def create(
    world: BrokerWorld,
    node: NodeId,
    name: str,
    partitions: int = 3,
    replication: int = -1,
    settings: Mapping[str, str] | None = None,
) -> KafkaesqueError | None:
    """Create a topic through one broker; return what it answered."""
    answers: list[KafkaesqueError | None] = []

    def ask(broker: Broker) -> None:
        broker.create_topic(
            name, partitions, settings or {}, answers.append, replication=replication
        )

    world.ask_broker(world.nodes[node], ask)
    wait(world, lambda: bool(answers))
    return answers[0]


def leader_of(world: BrokerWorld, name: str, index: int = 0) -> BrokerNode | None:
    """The node that every running broker names as the leader of a partition."""
    named = set()
    for machine in world.able():
        assert machine.broker is not None
        topic = machine.broker.committed_catalog.machine.topics.get(name)
        if topic is None:
            return None
        named.add(machine.broker.partition_leader(topic, index).node)
    node = named.pop()
    return None if named or node is None else world.nodes[node]


def takes(world: BrokerWorld, name: str, index: int = 0) -> bool:
    """Whether a partition accepts records: it has a leader that is not being transferred."""
    leader = leader_of(world, name, index)
    if leader is None or leader.broker is None:
        return False
    return leader.broker.partition(name, index).replica.may_propose


def write(world: BrokerWorld, name: str, index: int = 0) -> list[Outcome]:
    """Append one record at the partition's leader."""
    machine = leader_of(world, name, index)
    assert machine is not None
    outcomes: list[Outcome] = []
    record = Record(offset=0, timestamp_ms=world.clock.now_ms(), key=None, value=b"x")

    def ask(broker: Broker) -> None:
        batch = memoryview(bytearray(build_batch([record])))
        broker.partition(name, index).append(batch, outcomes.append)

    world.ask_broker(machine, ask)
    return outcomes


def catalog_leader(world: BrokerWorld) -> NodeId:
    leader = world.leading(CATALOG_GROUP)
    assert leader is not None
    return leader.raft.node


def test_a_topic_is_created_through_any_broker_and_known_to_all() -> None:
    world = ready_world()
    for node in world.nodes:
        assert create(world, node, f"topic-{node}") is None
        assert f"topic-{node}" in broker_of(world, node).catalog.topics
    wait(world, lambda: is_of_one_mind(world))
    for node in world.nodes:
        assert broker_of(world, node).topics.names == ["topic-1", "topic-2", "topic-3"]


def test_refusals_of_the_catalog_are_reported_by_any_broker() -> None:
    world = ready_world()
    assert create(world, 1, "orders") is None
    follower = next(node for node in world.nodes if node != catalog_leader(world))
    assert isinstance(create(world, follower, "orders"), TopicExists)


def test_settings_that_were_changed_concurrently_are_not_overwritten() -> None:
    world = ready_world()
    assert create(world, 1, "orders") is None
    wait(world, lambda: is_of_one_mind(world))
    answers: list[KafkaesqueError | None] = []

    def change(name: str) -> Callable[[Broker], None]:
        after = {name: "60000"}
        return lambda broker: broker.set_settings("orders", after, answers.append, expected={})

    world.ask_broker(world.nodes[1], change("retention.ms"))
    world.ask_broker(world.nodes[2], change("segment.ms"))
    wait(world, lambda: len(answers) == 2)
    assert {type(one) for one in answers} == {type(None), SettingsChanged}


@pytest.mark.requirement("REP-1")
@pytest.mark.parametrize(("brokers", "voters"), [(3, 3), (5, 3), (5, 5)])
def test_partitions_are_led_by_their_first_replicas_in_equal_shares(
    brokers: int, voters: int
) -> None:
    world = ready_world(brokers, voters)
    assert create(world, 1, "orders", partitions=brokers) is None
    wait(world, lambda: is_of_one_mind(world))
    replicas = broker_of(world, 1).catalog.topics["orders"].replicas
    leaders = [leader_of(world, "orders", index) for index in range(brokers)]
    assert [one.node for one in leaders if one is not None] == [nodes[0] for nodes in replicas]
    assert len({nodes[0] for nodes in replicas}) == brokers


def test_a_topic_created_while_brokers_are_down_is_placed_on_the_others() -> None:
    world = ready_world(5, 5)
    down = [node for node in world.nodes if node != catalog_leader(world)][:2]
    for node in down:
        world.nodes[node].kill()
    asked = catalog_leader(world)
    wait(world, lambda: not any(map(broker_of(world, asked).replicas.is_reachable, down)))
    assert create(world, asked, "orders", partitions=10, replication=3) is None
    assert create(world, asked, "copies", partitions=1, replication=4) is None
    topics = broker_of(world, asked).catalog.topics
    there = {node for node in world.nodes if node not in down}
    assert all(set(nodes) == there for nodes in topics["orders"].replicas)
    assert there < set(topics["copies"].replicas[0]), (
        "the fourth one gets partitions when it returns"
    )


def test_a_follower_and_a_broker_without_the_partition_both_say_so() -> None:
    world = ready_world(5)
    assert create(world, 1, "orders", partitions=1, replication=3) is None
    wait(world, lambda: is_of_one_mind(world))
    leader, *followers = broker_of(world, 1).catalog.topics["orders"].replicas[0]
    with pytest.raises(NotLeader):
        broker_of(world, followers[0]).partition("orders", 0).read(0, 100)
    stranger = next(node for node in world.nodes if node not in (leader, *followers))
    with pytest.raises(NotHere):
        broker_of(world, stranger).partition("orders", 0)


@pytest.mark.requirement("REP-4")
def test_a_killed_leader_is_replaced_and_takes_over_again_when_it_returns() -> None:
    world = ready_world()
    assert create(world, 1, "orders", partitions=1) is None
    wait(world, lambda: is_of_one_mind(world))
    outcomes = write(world, "orders")
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    first = leader_of(world, "orders")
    assert first is not None
    first.kill()
    wait(world, lambda: leader_of(world, "orders") not in (None, first))
    outcomes = write(world, "orders")
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    world.start(first)
    wait(world, lambda: first.is_ready and leader_of(world, "orders") is first)
    assert broker_of(world, first.node).partition("orders", 0).high_watermark == 2


def test_a_minority_acknowledges_nothing() -> None:
    world = ready_world()
    assert create(world, 1, "orders", partitions=1) is None
    wait(world, lambda: is_of_one_mind(world))
    leader = leader_of(world, "orders")
    for machine in world.nodes.values():
        if machine is not leader:
            machine.kill()
    outcomes = write(world, "orders")
    world.run(2_000)
    assert outcomes in ([], [Outcome.UNKNOWN])


def test_a_change_whose_leader_dies_has_an_unknown_outcome() -> None:
    world = ready_world()
    leader = catalog_leader(world)
    asked = next(node for node in world.nodes if node != leader)
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(
        world.nodes[asked], lambda broker: broker.delete_topic("orders", answers.append)
    )
    world.nodes[leader].kill()
    wait(world, lambda: bool(answers))
    assert "check whether the change was made" in str(answers[0])


def test_a_broker_with_another_disk_under_an_old_id_is_refused() -> None:
    world = ready_world()
    machine = world.nodes[2]
    machine.kill()
    machine._membership = replace(machine._membership, directory=b"another disk....")
    world.start(machine)
    wait(world, lambda: not machine.is_up)
    assert machine.has_failed


def test_the_group_state_moves_with_its_partition() -> None:
    world = ready_world()
    ready: list[KafkaesqueError | None] = []
    world.ask_broker(world.nodes[1], lambda b: b.coordinators.when_ready(ready.append))
    wait(world, lambda: bool(ready) and broker_of(world, 1).coordinator_of("readers") is not None)
    before = broker_of(world, 1).coordinator_of("readers")
    assert before is not None
    world.nodes[before].kill()
    other = next(node for node in world.nodes if node != before)
    wait(world, lambda: broker_of(world, other).coordinator_of("readers") not in (None, before))
    after = broker_of(world, other).coordinator_of("readers")
    assert after is not None
    wait(world, lambda: broker_of(world, after).coordinators.is_open)


def test_deleted_topics_are_gone_everywhere_with_their_files() -> None:
    world = ready_world()
    assert create(world, 1, "orders") is None
    topic = broker_of(world, 1).catalog.topics["orders"]
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(world.nodes[2], lambda b: b.delete_topic("orders", answers.append))
    wait(world, lambda: bool(answers))
    wait(world, lambda: all("orders" not in str(m.disk.list("")) for m in world.nodes.values()))
    for machine in world.nodes.values():
        assert group_of(topic, 0) not in broker_of(world, machine.node).replicas.by_group


def test_without_a_leader_of_the_catalog_a_change_is_refused() -> None:
    world = ready_world()
    for node in (2, 3):
        world.nodes[node].kill()
    world.run(3_000)
    answers: list[KafkaesqueError | None] = []
    broker_of(world, 1).create_topic("orders", 1, {}, answers.append)
    assert [type(error) for error in answers] == [NotLeader]


def test_a_leader_that_lost_its_followers_does_not_report_success() -> None:
    world = ready_world()
    leader = catalog_leader(world)
    for node in world.nodes:
        if node != leader:
            world.network.cut(leader, node)
            world.network.cut(node, leader)
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(
        world.nodes[leader], lambda broker: broker.create_topic("orders", 1, {}, answers.append)
    )
    wait(world, lambda: bool(answers))
    assert isinstance(answers[0], OutcomeUnknown)
    world.network.heal()
    wait(world, lambda: is_of_one_mind(world))
    for node in world.nodes:
        assert broker_of(world, node).topics.names == []


def test_a_leader_that_resumes_after_a_pause_serves_nothing_of_its_old_term() -> None:
    world = ready_world()
    assert create(world, 1, "orders", partitions=1) is None
    wait(world, lambda: is_of_one_mind(world))
    paused = leader_of(world, "orders")
    assert paused is not None
    outcomes = write(world, "orders")
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    paused.paused_until = world.clock.time + 2_000
    wait(world, lambda: leader_of(world, "orders") not in (None, paused))
    outcomes = write(world, "orders")
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    wait(world, lambda: not world.is_paused(paused) and is_of_one_mind(world))
    assert broker_of(world, paused.node).partition("orders", 0).high_watermark == 2


@pytest.mark.complains("replica_stopped partition=* reason=a sync failed *")
@pytest.mark.parametrize("is_catalog", [True, False])
def test_a_broker_whose_disk_fails_for_one_log_stops_and_returns_with_all_of_them(
    *, is_catalog: bool
) -> None:
    world = ready_world()
    assert create(world, 1, "orders", partitions=1, replication=3) is None
    wait(world, lambda: is_of_one_mind(world))
    topic = broker_of(world, 2).committed_catalog.machine.topic("orders")
    group = CATALOG_GROUP if is_catalog else group_of(topic, 0)
    failed = DiskFailed("a sync failed in the middle of an install")
    world.ask_broker(world.nodes[2], lambda b: b.replicas.by_group[group].stop(failed))
    assert not world.nodes[2].is_up, "otherwise its groups wait for it in vain"
    world.start(world.nodes[2])
    wait(world, lambda: is_of_one_mind(world))
