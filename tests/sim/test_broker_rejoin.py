"""A broker of a cluster that has lost its journal: the others send it everything again."""

import pytest

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.aside import LEAP
from kafkaesque.broker.storage.identity import FolderIdentity
from kafkaesque.broker.storage.salvage import Remembered, has_journal, rejoin
from kafkaesque.broker.storage.storage_errors import JournalLost
from kafkaesque.errors import LogError
from kafkaesque.log.journal import PATH
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.disk import PowerLost
from tests.sim.test_broker_old_copies import (
    OLD,
    a_world,
    check_that_only_1_may_lead,
    is_found,
    is_in_doubt,
    is_revived,
    is_whole,
    leads,
    single_replica_on_old_copy,
    write_to_all,
)
from tests.sim.test_broker_world import broker_of, wait, write

pytestmark = pytest.mark.simulation

ME = FolderIdentity(cluster="c", node=OLD, directory=bytes(16), is_founder=False, has_begun=True)


def lose_journal(world: BrokerWorld, how: str = "damaged") -> None:
    """Kill it, and let its disk lose the journal."""
    machine = world.nodes[OLD]
    machine.kill()
    if how == "missing":
        machine.disk.remove(PATH)
    else:
        file = machine.disk.open(PATH)
        file.write(0, b"\0" * file.size())
        machine.disk.sync_now([file], [])
    machine.disk.sync_now([], [""])


def told(world: BrokerWorld) -> list[Remembered]:
    return [
        machine.broker.remembered(OLD)
        for node, machine in world.nodes.items()
        if node != OLD and machine.broker is not None
    ]


def begin_again(world: BrokerWorld) -> None:
    rejoin(world.nodes[OLD].disk, world.settings.log, ME, told(world))


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_it_is_refilled_without_a_vote_and_no_file_is_deleted(how: str) -> None:
    world = a_world()
    write_to_all(world)
    write_to_all(world)
    lose_journal(world, how)
    disk = world.nodes[OLD].disk
    if how == "damaged":
        with pytest.raises(JournalLost, match="--rejoin"):
            world.nodes[OLD].start()
    (group,) = [f"{name}/0" for name in disk.list("") if name.startswith("orders.")]
    before = [name for name in disk.list(group) if name.endswith(".log")]
    begin_again(world)
    world.start(world.nodes[OLD])
    wait(world, lambda: is_whole(world))
    assert [f"{name}.1.damaged" in disk.list(group) for name in before] == [True] * len(before)
    assert (f"{PATH}.1.damaged" in disk.list("")) == (how == "damaged")
    for index in range(3):
        assert broker_of(world, OLD).partition("orders", index).high_watermark == 2
    write_to_all(world)
    wait(world, lambda: is_whole(world))
    broker = broker_of(world, OLD)
    assert all(one.raft.term > LEAP for one in broker.replicas.by_group.values())
    assert world.nodes[OLD].is_up, "nobody takes it for an old copy"
    assert not is_in_doubt(world)


def test_a_broker_that_lacks_acknowledged_records_cannot_help_to_elect_a_leader() -> None:
    world = a_world()
    write_to_all(world)
    world.nodes[2].kill()
    wait(world, lambda: all(leads(world, index) for index in range(3)))
    write_to_all(world)  # on 1 and 3 alone
    lose_journal(world)
    begin_again(world)
    check_that_only_1_may_lead(world)


@pytest.mark.event("log_rebuilt")
@pytest.mark.complains("log_rebuilt partition=single.* end=1 *: no other broker holds *")
def test_the_only_replica_carries_on_from_its_segments() -> None:
    world = a_world()
    index = single_replica_on_old_copy(world)
    outcomes = write(world, "single", index)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    write_to_all(world)
    lose_journal(world)
    begin_again(world)
    world.start(world.nodes[OLD])
    wait(world, lambda: is_whole(world))
    partition = broker_of(world, OLD).partition("single", index)
    wait(world, lambda: partition.high_watermark == 1)
    assert partition.replica.raft.term > LEAP
    more = write(world, "single", index)
    wait(world, lambda: more == [Outcome.COMMITTED])
    assert partition.high_watermark == 2


def test_a_broker_that_loses_power_while_it_rejoins_can_try_again() -> None:
    world = a_world()
    write_to_all(world)
    lose_journal(world)
    machine = world.nodes[OLD]
    lost = machine.disk.image()
    operations = 0
    while True:  # ends: each round gets further
        operations += 1
        machine.disk.restore(lost)
        machine.disk.crash_after = machine.disk.operations + operations
        try:
            begin_again(world)
        except PowerLost:
            machine.lose_power()
            machine.disk.crash_after = None
            if not has_journal(machine.disk, world.settings.log):
                begin_again(world)
            wait(world, lambda: is_revived(world) and is_whole(world))
            machine.kill()
            continue
        break
    assert operations > 5


def test_the_only_voter_of_the_catalog_cannot_be_refilled() -> None:
    world = a_world()
    lose_journal(world)
    alone = Remembered(run=1, round=1, term=1, voters=(OLD,))
    with pytest.raises(LogError, match="only this broker votes on the catalog"):
        rejoin(world.nodes[OLD].disk, world.settings.log, ME, [alone])
    assert is_found(world)
