"""A broker whose machine was restored from an image: others remember more of it than it does."""

import pytest

from kafkaesque.broker.problems import ProblemKind, problems
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.aside import LEAP
from kafkaesque.errors import KafkaesqueError
from kafkaesque.log.journal import Journal
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.disk import PowerLost
from kafkaesque.sim.inode import Folder
from kafkaesque.types import NO_TERM
from tests.sim.test_broker_growth import pass_ms
from tests.sim.test_broker_world import (
    broker_of,
    create,
    leader_of,
    ready_world,
    takes,
    wait,
    write,
)

OLD = 3
pytestmark = pytest.mark.complains(
    "old_copy peer=*: broker * remembers newer data than *",
    "tail_lost partition=* offset=*: the disk lost synced *",  # leaders notice, too
)


def a_world() -> BrokerWorld:
    world = ready_world()
    assert create(world, 1, "orders", partitions=3) is None
    wait(world, lambda: is_of_one_mind(world))
    return world


def write_to_all(world: BrokerWorld) -> None:
    """Let every partition accept a record, and the brokers exchange messages."""
    for index in range(3):
        wait(world, lambda index=index: takes(world, "orders", index))  # type: ignore[misc]
        outcomes = write(world, "orders", index)
        wait(world, lambda outcomes=outcomes: outcomes == [Outcome.COMMITTED])  # type: ignore[misc]
    pass_ms(world, 1_000)


def restored(world: BrokerWorld, image: dict[str, Folder]) -> None:
    machine = world.nodes[OLD]
    machine.lose_power()
    machine.disk.restore(image)
    world.start(machine)


def leads(world: BrokerWorld, index: int) -> bool:
    leader = leader_of(world, "orders", index)
    return leader is not None and leader.is_up


def is_found(world: BrokerWorld) -> bool:
    return not world.nodes[OLD].is_up


def is_revived(world: BrokerWorld) -> bool:
    """Start it whenever it is down: a peer may remember more than the one that detected it."""
    if is_found(world):
        world.start(world.nodes[OLD])
        return False
    return True


def come_back(world: BrokerWorld) -> None:
    """Let the old copy be detected, and start again."""
    wait(world, lambda: is_found(world))
    world.start(world.nodes[OLD])


def is_whole(world: BrokerWorld, name: str = "orders", partitions: int = 3) -> bool:
    """Whether the old copy votes again everywhere, and all copies of a topic are the same."""
    broker = world.nodes[OLD].broker
    if broker is None or not is_of_one_mind(world):
        return False
    if any(one.raft.is_recovering for one in broker.replicas.by_group.values()):
        return False
    ends = {
        (index, broker_of(world, node).partition(name, index).high_watermark)
        for node in world.nodes
        for index in range(partitions)
    }
    return len(ends) == partitions


def is_in_doubt(world: BrokerWorld) -> bool:
    """Stop the old copy; return whether its journal says that it may have forgotten groups."""
    machine = world.nodes[OLD]
    machine.stop_cleanly()
    return Journal.open(machine.disk, world.settings.log).doubted_term != NO_TERM


def check_refilled(world: BrokerWorld, records: int) -> None:
    """Check that the returned old copy has all records and that no offset was assigned twice."""
    come_back(world)
    wait(world, lambda: is_whole(world))
    for index in range(3):
        for node in world.nodes:
            assert broker_of(world, node).partition("orders", index).high_watermark == records
    write_to_all(world)
    wait(world, lambda: is_whole(world))
    assert broker_of(world, OLD).partition("orders", 0).high_watermark == records + 1
    broker = broker_of(world, OLD)
    assert all(one.raft.term > LEAP for one in broker.replicas.by_group.values())
    assert not is_in_doubt(world)


def test_an_image_of_a_stopped_broker_that_ran_again_later_is_detected() -> None:
    world = a_world()
    machine = world.nodes[OLD]
    machine.stop_cleanly()
    image = machine.disk.image()
    world.start(machine)
    wait(world, lambda: is_of_one_mind(world))
    write_to_all(world)
    restored(world, image)
    check_refilled(world, 1)


def test_an_image_of_the_same_run_is_detected_by_the_round_of_its_journal() -> None:
    world = a_world()
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    write_to_all(world)
    restored(world, image)
    check_refilled(world, 2)


def test_a_broker_that_was_killed_or_lost_power_is_not_an_old_copy() -> None:
    world = a_world()
    machine = world.nodes[OLD]
    for stop in (machine.kill, machine.lose_power, machine.stop_cleanly, machine.kill):
        write_to_all(world)
        stop()
        pass_ms(world, 500)
        world.start(machine)
        wait(world, lambda: is_of_one_mind(world))
        pass_ms(world, 500)
        assert machine.is_up


def test_the_others_may_have_restarted_meanwhile() -> None:
    world = a_world()
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    write_to_all(world)
    world.nodes[OLD].lose_power()
    for node in (1, 2):
        world.nodes[node].stop_cleanly()
        world.start(world.nodes[node])
    restored(world, image)
    check_refilled(world, 2)


def check_that_only_1_may_lead(world: BrokerWorld) -> None:
    """While 1 is down the old copy and 2 elect nobody; then nothing is lost."""
    world.nodes[1].kill()
    world.start(world.nodes[OLD])
    world.start(world.nodes[2])
    pass_ms(world, 10_000)
    assert world.leading(CATALOG_GROUP) is None, "nobody but 1 has all that was acknowledged"
    world.start(world.nodes[1])
    wait(world, lambda: is_whole(world))
    assert broker_of(world, 2).partition("orders", 0).high_watermark == 2


def test_an_old_copy_that_lacks_acknowledged_records_cannot_help_to_elect_a_leader() -> None:
    world = a_world()
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    world.nodes[2].kill()
    wait(world, lambda: all(leads(world, index) for index in range(3)))
    write_to_all(world)  # on 1 and 3 alone
    restored(world, image)
    wait(world, lambda: is_found(world))
    check_that_only_1_may_lead(world)


@pytest.mark.parametrize(("seed", "gap_ms"), [(14, 100), (17, 2_000), (32, 2_000), (36, 100)])
def test_an_old_copy_does_not_vote_before_the_peer_that_remembers_more_has_reported(
    seed: int, gap_ms: int
) -> None:
    """Otherwise it could vote twice in a term, or for a log without acknowledged records."""
    world = BrokerWorld(seed, BrokerSettings(brokers=3, voters=3))
    wait(world, lambda: len(world.able()) == 3)
    assert create(world, 1, "orders", partitions=3) is None
    wait(world, lambda: is_of_one_mind(world))
    write_to_all(world)
    machine = world.nodes[OLD]
    machine.stop_cleanly()
    image = machine.disk.image()
    world.start(machine)
    wait(world, lambda: is_of_one_mind(world))
    write_to_all(world)  # all brokers learn of the later run
    world.nodes[2].kill()
    wait(world, lambda: all(leads(world, index) for index in range(3)))
    write_to_all(world)  # on 1 and 3 alone
    world.nodes[1].kill()
    machine.lose_power()
    machine.disk.restore(image)
    world.start(world.nodes[2])
    pass_ms(world, gap_ms)
    world.start(machine)
    pass_ms(world, 5_000)  # the world itself checks that no wrong leader is elected
    assert is_found(world)
    assert world.leading(CATALOG_GROUP) is None, "only 1 has everything acknowledged"


def test_a_topic_newer_than_the_image_is_refilled_before_the_old_copy_votes_on_it() -> None:
    world = a_world()
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    assert create(world, 1, "later", partitions=3) is None
    wait(world, lambda: is_of_one_mind(world))
    outcomes = [write(world, "later", index) for index in range(3)]
    wait(world, lambda: outcomes == [[Outcome.COMMITTED]] * 3)
    pass_ms(world, 1_000)
    restored(world, image)
    wait(world, lambda: is_found(world))
    machine = world.nodes[OLD]
    world.start(machine)
    wait(world, lambda: machine.is_ready)
    for index in range(3):
        assert broker_of(world, OLD).partition("later", index).replica.raft.term >= LEAP
    wait(world, lambda: is_whole(world, "later"))
    assert broker_of(world, OLD).partition("later", 1).high_watermark == 1


def test_a_topic_created_after_the_old_copy_returned_starts_normally() -> None:
    world = a_world()
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    write_to_all(world)
    restored(world, image)
    come_back(world)
    wait(world, lambda: is_whole(world))
    assert create(world, 1, "fresh", partitions=3, replication=2) is None
    wait(world, lambda: is_whole(world, "orders"))
    for index in range(3):
        wait(world, lambda index=index: leader_of(world, "fresh", index) is not None)  # type: ignore[misc]
        leader = leader_of(world, "fresh", index)
        assert leader is not None
        assert leader.broker is not None
        assert leader.broker.partition("fresh", index).replica.raft.term < LEAP


def single_replica_on_old_copy(world: BrokerWorld) -> int:
    """Create a topic with one replica; return a partition of it that the old copy hosts."""
    assert create(world, 1, "single", partitions=3, replication=1) is None
    wait(world, lambda: is_of_one_mind(world))
    replicas = broker_of(world, 1).catalog.topics["single"].replicas
    return next(index for index, nodes in enumerate(replicas) if nodes == (OLD,))


@pytest.mark.event("old_copy")
def test_the_only_replica_carries_on_with_what_it_has_and_reports_it() -> None:
    world = a_world()
    index = single_replica_on_old_copy(world)
    outcomes = write(world, "single", index)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    write_to_all(world)
    machine = world.nodes[OLD]
    image = machine.disk.image()
    lost = write(world, "single", index)
    wait(world, lambda: lost == [Outcome.COMMITTED])
    write_to_all(world)
    machine.lose_power()
    # What the checks of the world would rightly call a loss is intended here.
    del world.groups[group_of(broker_of(world, 1).catalog.topics["single"], index)]
    restored(world, image)
    come_back(world)
    wait(world, lambda: is_whole(world))
    broker = broker_of(world, OLD)
    assert broker.partition("single", index).high_watermark == 1
    (found,) = [one for one in problems(broker) if one.kind is ProblemKind.OLD_COPY]
    assert f"single-{index}" in found.text


def test_a_partition_that_has_other_replicas_by_now_is_refilled_by_them() -> None:
    world = a_world()
    index = single_replica_on_old_copy(world)
    outcomes = write(world, "single", index)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    answers: list[KafkaesqueError | None] = []
    moves = [(broker_of(world, 1).catalog.topics["single"].topic_id, index, (1, 2, OLD))]
    world.ask_broker(world.nodes[1], lambda b: b.move_partitions(moves, answers.append))
    wait(world, lambda: answers == [None])
    wait(world, lambda: not broker_of(world, 1).catalog.topics["single"].moves)
    more = write(world, "single", index)
    wait(world, lambda: more == [Outcome.COMMITTED])
    write_to_all(world)
    restored(world, image)
    come_back(world)
    wait(world, lambda: is_whole(world))
    wait(world, lambda: broker_of(world, OLD).partition("single", index).high_watermark == 2)


def test_an_image_restored_twice_is_detected_twice() -> None:
    world = a_world()
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    for records in (2, 4):
        write_to_all(world)
        restored(world, image)
        check_refilled(world, records)


def test_an_old_copy_that_loses_power_during_its_start_still_returns() -> None:
    world = a_world()
    write_to_all(world)
    image = world.nodes[OLD].disk.image()
    write_to_all(world)
    restored(world, image)
    wait(world, lambda: is_found(world))
    machine = world.nodes[OLD]
    found = machine.disk.image()
    operations = 0
    while True:  # ends: each round gets further
        operations += 1
        machine.disk.restore(found)
        machine.disk.crash_after = machine.disk.operations + operations
        try:
            machine.start()
        except PowerLost:
            machine.lose_power()
            machine.disk.crash_after = None
            wait(world, lambda: is_revived(world) and is_whole(world))
            machine.kill()
            continue
        break
    assert operations > 10
