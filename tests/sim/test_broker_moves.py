"""Partitions are moved while everything runs: records, files and coordinators go with them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition_errors import NotHere
from kafkaesque.broker.replication.preferred_leaders import TICKS_BETWEEN as PREFERRED_TICKS
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.cluster_config import MoveConfig
from kafkaesque.config import BrokerConfig, RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.catalog_errors import BrokerInUse, InvalidAssignment
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.sim.broker_run import check_holdings, is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from tests.sim.test_broker_world import broker_of, leader_of, wait, write

SETTINGS = BrokerSettings(brokers=5, voters=3)


def a_world(
    replicas: Sequence[Sequence[NodeId]] = ((1, 2, 3),), settings: BrokerSettings = SETTINGS
) -> BrokerWorld:
    """Five brokers, and a topic whose partitions are on these."""
    world = BrokerWorld(1, settings)
    wait(world, lambda: len(world.able()) == settings.brokers)
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(
        world.nodes[1],
        lambda b: b.create_topic("orders", len(replicas), {}, answers.append, assignment=replicas),
    )
    wait(world, lambda: answers == [None] and is_of_one_mind(world))
    return world


def orders(world: BrokerWorld, node: NodeId = 1) -> Topic:
    return broker_of(world, node).committed_catalog.machine.topic("orders")


def move(
    world: BrokerWorld, nodes: Sequence[NodeId], index: int = 0, through: NodeId = 1
) -> KafkaesqueError | None:
    """Start a move, or cancel it; return what the broker answered."""
    answers: list[KafkaesqueError | None] = []
    moves = [(orders(world, through).topic_id, index, nodes)]
    try:
        world.ask_broker(world.nodes[through], lambda b: b.move_partitions(moves, answers.append))
    except KafkaesqueError as error:
        return error
    wait(world, lambda: bool(answers))
    return answers[0]


def fill(world: BrokerWorld, count: int = 20) -> None:
    for _ in range(count):
        outcomes = write(world, "orders")
        wait(world, lambda done=outcomes: done == [Outcome.COMMITTED])  # type: ignore[misc]


def is_done(world: BrokerWorld) -> bool:
    return not any(orders(world, machine.node).moves for machine in world.able())


def is_settled(world: BrokerWorld) -> bool:
    return is_done(world) and is_of_one_mind(world)


def holders(world: BrokerWorld, index: int = 0) -> list[NodeId]:
    group = group_of(orders(world), index)
    return [n for n in world.nodes if group in broker_of(world, n).replicas.by_group]


@pytest.mark.event("move_begun", "voters_changed", "move_ended")
def test_a_partition_moves_to_other_brokers_with_all_its_records() -> None:
    world = a_world()
    fill(world)
    assert move(world, [4, 5, 3]) is None
    wait(world, lambda: is_settled(world))
    assert orders(world).replicas == ((4, 5, 3),)
    assert holders(world) == [3, 4, 5]
    check_holdings(world)
    leader = leader_of(world, "orders")
    assert leader is world.nodes[4], "the first of the new brokers leads"
    assert broker_of(world, 4).partition("orders", 0).high_watermark == 20
    with pytest.raises(NotHere):
        broker_of(world, 1).partition("orders", 0)


@pytest.mark.event("move_begun", "move_ended")
def test_every_replica_reports_the_move_and_the_partitions_new_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = a_world()
    assert move(world, [4, 5, 3]) is None
    wait(world, lambda: is_settled(world))
    told = Counter(text for text in caplog.messages if text.startswith("move_"))
    group = group_of(orders(world), 0)
    assert told == {
        f"move_begun partition={group} from=1,2,3 to=4,5,3": 5,
        f"move_ended partition={group} nodes=4,5,3": 5,
    }


def test_a_new_replica_starts_without_knowing_the_voters() -> None:
    world = a_world()
    assert move(world, [4, 5, 3]) is None
    wait(world, lambda: is_settled(world))
    for node, voters in ((3, (1, 2, 3)), (4, ()), (5, ())):
        assert broker_of(world, node).partition("orders", 0).replica.log.start.voters == Voters(
            voters=voters
        )


def test_the_group_has_the_number_of_every_move_even_of_one_that_changes_nothing() -> None:
    world = a_world()
    group = group_of(orders(world), 0)
    for number, nodes in enumerate(([3, 2, 1], [4, 2, 1]), start=1):
        assert move(world, nodes) is None
        wait(world, lambda: is_settled(world))
        leader = world.leading(group)
        assert leader is not None
        assert leader.raft.voters == Voters(voters=tuple(sorted(nodes)), move=number)


def test_a_move_is_not_done_before_its_last_change_is_committed() -> None:
    world = a_world([[4, 5]])
    replica = broker_of(world, 4).partition("orders", 0).replica
    assert move(world, [4]) is None
    wait(world, lambda: replica.raft.voters.move == 1)
    world.nodes[4].disk.faults = replace(SETTINGS.disk, sync_delay_max=2_000)
    wait(world, lambda: is_done(world))
    assert replica.raft.voters.voters == (4,)
    assert replica.raft.voters_index < replica.raft.commit


@pytest.mark.parametrize(
    ("before", "after"), [([1], [2]), ([1], [1, 2, 3]), ([1, 2, 3], [2]), ([1, 2], [4, 5])]
)
def test_a_partition_can_get_more_or_fewer_replicas(
    before: list[NodeId], after: list[NodeId]
) -> None:
    world = a_world([before])
    fill(world, 5)
    assert move(world, after) is None
    wait(world, lambda: is_settled(world))
    assert holders(world) == sorted(after)
    assert broker_of(world, after[0]).partition("orders", 0).high_watermark == 5


def test_records_are_written_while_the_partition_moves() -> None:
    world = a_world()
    assert move(world, [4, 5]) is None
    written = 0
    while not is_done(world):
        world.run(50)
        if leader_of(world, "orders") is not None:
            try:
                outcomes = write(world, "orders")
            except KafkaesqueError:
                continue  # leadership is being transferred
            wait(world, lambda done=outcomes: bool(done))  # type: ignore[misc]
            written += outcomes == [Outcome.COMMITTED]
    wait(world, lambda: is_of_one_mind(world))
    assert written > 0
    assert broker_of(world, 4).partition("orders", 0).high_watermark >= written


def test_a_move_to_a_broker_that_is_down_waits_for_it() -> None:
    world = a_world()
    world.nodes[5].kill()
    assert move(world, [1, 2, 5]) is None
    world.run(4_000)
    assert not is_done(world)
    assert leader_of(world, "orders") is not None
    fill(world, 3)
    world.start(world.nodes[5])
    wait(world, lambda: is_settled(world))
    assert holders(world) == [1, 2, 5]


def test_a_leader_to_be_removed_transfers_leadership_at_once() -> None:
    world = a_world([[1]])
    began = world.clock.time
    for node in (2, 3, 4):
        assert move(world, [node]) is None
        wait(world, lambda: is_done(world))
    ticks = (world.clock.time - began) // SETTINGS.tick_ms
    assert ticks < 2 * PREFERRED_TICKS, "otherwise the second and third wait for transfers"


def test_a_finished_move_is_reported_until_the_catalog_confirms_it() -> None:
    world = a_world([[4, 5]])
    replica = broker_of(world, 4).partition("orders", 0).replica
    assert move(world, [4]) is None
    wait(world, lambda: replica.raft.voters.move == 1)
    for node in (1, 2, 3):  # so the catalog has no majority, whether of three or five
        world.nodes[node].kill()
    wait(world, lambda: replica.raft.voters.voters == (4,))
    world.run(2_000)
    assert not is_done(world)
    for node in (1, 2, 3):
        world.start(world.nodes[node])
    wait(world, lambda: is_settled(world))
    assert holders(world) == [4]


def test_no_replica_leaves_while_the_remaining_ones_are_down() -> None:
    world = a_world()
    replica = broker_of(world, 1).partition("orders", 0).replica
    assert move(world, [4, 5]) is None
    wait(world, lambda: {4, 5} <= set(replica.raft.voters.voters))
    world.nodes[4].kill()
    world.nodes[5].kill()
    world.run(2_000)
    assert replica.raft.voters.voters == (1, 2, 3, 4, 5)
    fill(world, 3)
    for node in (4, 5):
        world.start(world.nodes[node])
    wait(world, lambda: is_settled(world))
    assert holders(world) == [4, 5]


def test_a_dead_broker_is_replaced_without_its_help() -> None:
    world = a_world()
    world.nodes[3].kill()
    assert move(world, [1, 2, 4]) is None
    wait(world, lambda: is_done(world))
    assert orders(world).replicas == ((1, 2, 4),)
    world.start(world.nodes[3])
    wait(world, lambda: is_settled(world))
    check_holdings(world)


def test_a_new_leader_continues_the_move() -> None:
    world = a_world()
    fill(world)
    assert move(world, [3, 4, 5], through=3) is None
    leader = leader_of(world, "orders")
    assert leader is not None
    leader.kill()
    wait(world, lambda: is_done(world))
    world.start(leader)
    wait(world, lambda: is_settled(world))
    assert holders(world) == [3, 4, 5]


def test_a_cancelled_move_returns_the_partition_to_its_old_place() -> None:
    world = a_world()
    fill(world)
    world.nodes[5].kill()
    assert move(world, [4, 5]) is None
    group = group_of(orders(world), 0)
    wait(world, lambda: 4 in world.leading(group).raft.voters.voters)  # type: ignore[union-attr]
    assert move(world, []) is None
    assert orders(world).holders(0) == (1, 2, 3, 4, 5)
    wait(world, lambda: is_done(world))
    world.start(world.nodes[5])
    wait(world, lambda: is_settled(world))
    assert holders(world) == [1, 2, 3]
    check_holdings(world)


def test_a_partition_that_returns_to_a_broker_is_refilled_before_it_votes() -> None:
    world = a_world()
    fill(world, 5)
    for nodes in ([4, 5, 3], [1, 2, 3], [4]):
        assert move(world, nodes, through=3) is None
        wait(world, lambda: is_settled(world))
        fill(world, 1)
        assert holders(world) == sorted(nodes)
    assert broker_of(world, 4).partition("orders", 0).high_watermark == 8


def test_a_broker_that_left_a_group_keeps_its_term_and_returns_without_a_vote() -> None:
    world = a_world()
    term = broker_of(world, 1).partition("orders", 0).term
    assert move(world, [4, 5, 3]) is None
    wait(world, lambda: is_settled(world))
    state = broker_of(world, 1)._store.journal.groups[group_of(orders(world), 0)]
    assert state.hard_state.term > term
    assert state.is_recovering
    world.nodes[1].lose_power()
    world.start(world.nodes[1])
    wait(world, lambda: is_settled(world))
    assert move(world, [1]) is None
    wait(world, lambda: is_settled(world))
    assert leader_of(world, "orders") is world.nodes[1]


def test_the_files_of_a_removed_partition_are_deleted_even_after_a_crash_in_between() -> None:
    world = a_world()
    fill(world)
    assert move(world, [4, 5, 3]) is None
    folder = group_of(orders(world), 0)
    wait(world, lambda: not any(m.moves for m in [orders(world, 1)]))
    world.nodes[1].lose_power()
    assert world.nodes[1].disk.list(folder) or world.nodes[1].disk.list(folder.split("/")[0])
    world.start(world.nodes[1])
    wait(world, lambda: is_settled(world))
    assert world.nodes[1].disk.list(folder.split("/")[0]) == []


def test_a_topic_deleted_during_a_move_is_gone_everywhere() -> None:
    world = a_world()
    world.nodes[5].kill()
    assert move(world, [4, 5]) is None
    world.run(500)
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(world.nodes[1], lambda b: b.delete_topic("orders", answers.append))
    wait(world, lambda: answers == [None])
    world.start(world.nodes[5])
    wait(world, lambda: is_of_one_mind(world))
    assert all("orders" not in str(m.disk.list("")) for m in world.nodes.values())
    for node in world.nodes:
        groups = broker_of(world, node)._store.journal.groups
        assert list(groups) == [CATALOG_GROUP]


def with_moves(**limits: int) -> BrokerSettings:
    """Brokers that may send little for moves, in small appends."""
    raft = RaftConfig(append_bytes_max=100)
    return replace(SETTINGS, broker=BrokerConfig(moves=MoveConfig(**limits), raft=raft))


def lacking(world: BrokerWorld) -> list[int]:
    """How many entries each new replica lacks, as reported by the leader of its partition."""
    moves = [one for node in world.nodes for one in broker_of(world, node).moves()]
    return [lack.entries for one in moves if one.behind for lack in one.behind.values()]


def test_new_replicas_stay_within_their_rate_and_report_their_progress() -> None:
    world = a_world([[1]], with_moves(catch_up_bytes_per_second=400))
    fill(world, 40)
    began = world.clock.time
    assert move(world, [2]) is None
    lacks: list[int] = []

    def look() -> bool:
        lacks.extend(lacking(world))
        return is_done(world)

    wait(world, look)
    seconds = (world.clock.time - began) / 1000
    assert 5 < seconds < 20, "40 batches of about 70 bytes take a while"
    assert max(lacks) > 30
    assert lacks == sorted(lacks, reverse=True)


def most_that_catch_up_at_once(world: BrokerWorld) -> int:
    """Move four partitions from broker 1, with a record each, and count while they catch up."""
    for index in range(4):
        outcomes = write(world, "orders", index)
        wait(world, lambda done=outcomes: done == [Outcome.COMMITTED])  # type: ignore[misc]
        assert move(world, [2], index) is None
    at_once: list[int] = []

    def look() -> bool:
        groups = broker_of(world, 1).replicas.by_group.items()
        led = [r for group, r in groups if group != CATALOG_GROUP and r.is_serving]
        at_once.append(sum(bool(replica.raft.voters.learners) for replica in led))
        return is_settled(world)

    wait(world, look)
    return max(at_once)


def test_no_more_partitions_catch_up_at_once_than_is_allowed() -> None:
    world = a_world([[1]] * 4, with_moves(moves_max=1, catch_up_bytes_per_second=200))
    assert most_that_catch_up_at_once(world) == 1


def test_the_coordinator_of_a_group_moves_with_its_partition() -> None:
    world = a_world()
    ready: list[KafkaesqueError | None] = []
    world.ask_broker(world.nodes[1], lambda b: b.coordinators.when_ready(ready.append))
    wait(world, lambda: bool(ready) and is_of_one_mind(world))
    catalog = broker_of(world, 1).committed_catalog.machine
    topic = catalog.topic("__consumer_offsets")
    before = broker_of(world, 1).coordinator_of("readers")
    away = [node for index in range(topic.partitions) for node in topic.replicas[index]]
    target = next(node for node in world.nodes if node != before)
    moves = [(topic.topic_id, index, [target]) for index in range(topic.partitions)]
    world.ask_broker(world.nodes[1], lambda b: b.move_partitions(moves, lambda _: None))
    wait(
        world,
        lambda: is_of_one_mind(world) and broker_of(world, 1).coordinator_of("readers") == target,
    )
    assert len(broker_of(world, target).coordinators.all) == topic.partitions
    for node in set(away) - {target}:
        assert list(broker_of(world, node).coordinators.all) == []


def drain(world: BrokerWorld, node: NodeId) -> None:
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(world.nodes[1], lambda b: b.drain_broker(node, answers.append))
    wait(world, lambda: answers == [None])


def test_a_drained_broker_gets_no_new_partitions() -> None:
    world = a_world()
    drain(world, 4)
    assert isinstance(move(world, [4, 5]), InvalidAssignment)
    answers: list[KafkaesqueError | None] = []
    world.ask_broker(
        world.nodes[1], lambda b: b.create_topic("bills", 20, {}, answers.append, replication=3)
    )
    wait(world, lambda: answers == [None])
    catalog = broker_of(world, 1).committed_catalog.machine
    assert all(4 not in nodes for nodes in catalog.topic("bills").replicas)


def remove(world: BrokerWorld, node: NodeId) -> KafkaesqueError | None:
    answers: list[KafkaesqueError | None] = []

    def ask(broker: Broker) -> None:
        try:
            broker.remove_broker(node, answers.append)
        except KafkaesqueError as error:
            answers.append(error)

    world.ask_broker(world.nodes[1], ask)
    wait(world, lambda: bool(answers))
    return answers[0]


def test_a_broker_can_be_removed_only_when_it_hosts_nothing() -> None:
    world = a_world([[4, 1]])
    assert isinstance(remove(world, 4), BrokerInUse)
    assert isinstance(remove(world, 2), BrokerInUse), "it votes on the catalog"
    assert move(world, [1, 2]) is None
    wait(world, lambda: is_settled(world))
    drain(world, 4)  # which also takes its vote on the catalog
    wait(world, lambda: remove(world, 4) is None)
    assert 4 not in broker_of(world, 1).committed_catalog.machine.brokers
