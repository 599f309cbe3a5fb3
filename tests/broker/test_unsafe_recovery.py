"""Groups that lost most of their voters are forced to carry on with what this broker has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.store import Store
from kafkaesque.broker.storage.unsafe_recovery import force_groups, forced_voters
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.log.errors import CorruptLog
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.raft.quorum import is_majority
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from tests.heard import Heard
from tests.sim.test_broker_growth import wait
from tests.sim.test_broker_world import create, leader_of, write

nodes = st.sets(st.integers(1, 7))


def test_a_learner_takes_over_from_the_only_voter() -> None:
    now = Voters(voters=(1,), learners=(2, 3))
    assert forced_voters(now, 2, {1}) == Voters(voters=(2,), learners=(3,))


def test_a_majority_needs_no_force() -> None:
    assert forced_voters(Voters(voters=(1, 2, 3)), 1, {3}) is None


def test_a_broker_that_is_not_a_member_has_nothing_to_carry_on_with() -> None:
    assert forced_voters(Voters(voters=(1,)), 2, {1}) is None


@given(nodes, nodes, nodes)
def test_force_is_used_only_where_no_majority_is_left(
    voters: set[int], learners: set[int], lost: set[int]
) -> None:
    now = Voters(voters=tuple(sorted(voters)), learners=tuple(sorted(learners - voters)))
    for node in set(now.members) - lost:
        wanted = forced_voters(now, node, lost)
        if is_majority(voters - lost, voters):
            assert wanted is None
        else:
            assert wanted is not None
            assert wanted.voters == (node,)
            assert set(wanted.members) == set(now.members) - lost


@pytest.mark.parametrize("lost", [1, 2])
def test_one_of_two_brokers_carries_on_with_everything_when_the_other_is_lost(lost: int) -> None:
    world = BrokerWorld(1, BrokerSettings(brokers=2, voters=1))
    wait(world, lambda: len(world.able()) == 2)
    assert create(world, 1, "orders", partitions=2) is None
    wait(world, lambda: leader_of(world, "orders") is not None)
    outcomes = write(world, "orders")
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    survivor = world.nodes[3 - lost]
    for machine in list(world.nodes.values()):
        machine.kill()
    failures: list[LogError] = []
    store = Store.open(
        survivor.disk, world.settings.log, world.clock, survivor.node, failures.append, Heard()
    )
    forced = force_groups(store, {lost})
    assert len(forced) == (3 if lost == 1 else 2), (
        "the partitions, and the catalog without its voter"
    )
    assert (CATALOG_GROUP in forced) == (lost == 1)
    store.close()
    survivor.disk.kill()
    world.start(survivor)
    wait(world, lambda: survivor.is_ready and leader_of(world, "orders") is survivor)
    assert survivor.broker is not None
    assert survivor.broker.partition("orders", 0).high_watermark == 1
    outcomes = write(world, "orders")
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    assert not failures


def test_a_copy_with_a_damaged_end_is_not_forced_and_stays_as_it_is() -> None:
    """Such a copy was emptied once, and the empty log became the group."""
    world = BrokerWorld(1, BrokerSettings(brokers=3, voters=3))
    wait(world, lambda: len(world.able()) == 3)
    assert create(world, 1, "orders") is None
    wait(world, lambda: leader_of(world, "orders") is not None)
    outcomes = write(world, "orders")
    wait(world, lambda: outcomes == [Outcome.COMMITTED])
    survivor = world.nodes[1]
    world.act(survivor, survivor.stop_cleanly)
    (folder,) = [name for name in survivor.disk.list("") if name.startswith("orders.")]
    group = f"{folder}/0"
    path = f"{group}/{max(name for name in survivor.disk.list(group) if name.endswith('.log'))}"
    file = survivor.disk.open(path)
    file.truncate(file.size() - 1)
    file.close()
    before = survivor.disk.list(group)
    store = Store.open(survivor.disk, world.settings.log, world.clock, 1, lambda _: None, Heard())
    with pytest.raises(CorruptLog):
        force_groups(store, {2, 3})
    assert survivor.disk.list(group) == before
    assert store.journal.groups[group].marks.voters()[-1][1].voters == (1, 2, 3)
