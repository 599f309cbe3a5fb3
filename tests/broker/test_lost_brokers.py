"""Brokers that an operator gave up are drained by the broker that carries on without them."""

import random

import pytest

from kafkaesque.broker.cluster.lost_brokers import NAME, load_lost, save_lost
from kafkaesque.broker.storage.store import Store
from kafkaesque.broker.storage.unsafe_recovery import force_groups
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.disk import SimDisk
from tests.heard import Heard
from tests.sim.disks import SMALL_PAGES, Later
from tests.sim.test_broker_world import broker_of, create, wait


def a_disk() -> SimDisk:
    disk = SimDisk(random.Random(1), Later(), SMALL_PAGES)
    disk.make_folder(CATALOG_GROUP)
    return disk


def test_new_lost_brokers_are_added_to_earlier_ones() -> None:
    disk = a_disk()
    assert load_lost(disk, Heard()) == frozenset()
    save_lost(disk, [3], Heard())
    save_lost(disk, [2], Heard())
    assert load_lost(disk, Heard()) == {2, 3}


@pytest.mark.event("lost_brokers_unreadable")
@pytest.mark.complains("lost_brokers_unreadable path=cluster-metadata/lost-brokers: *")
def test_a_damaged_file_names_no_broker_and_is_reported() -> None:
    disk = a_disk()
    save_lost(disk, [2], Heard())
    file = disk.open(f"{CATALOG_GROUP}/{NAME}")
    file.write(file.size() - 1, b"\x07")
    file.close()
    assert load_lost(disk, Heard()) == frozenset()


@pytest.mark.parametrize("topics", [0, 1])
def test_the_survivor_drains_them_and_removes_the_file(topics: int) -> None:
    world = BrokerWorld(1, BrokerSettings(brokers=3, voters=3))
    wait(world, lambda: len(world.able()) == 3)
    for _ in range(topics):
        assert create(world, 1, "orders") is None
    survivor = world.nodes[1]
    for machine in list(world.nodes.values()):
        machine.kill()
    store = Store.open(survivor.disk, world.settings.log, world.clock, 1, lambda _: None, Heard())
    force_groups(store, {2, 3})
    store.close()
    save_lost(survivor.disk, {2, 3}, Heard())
    survivor.disk.kill()
    world.start(survivor)
    wait(world, lambda: survivor.is_ready and NAME not in survivor.disk.list(CATALOG_GROUP))
    known = broker_of(world, 1).committed_catalog.machine.brokers
    assert {node for node, one in known.items() if one.is_draining} == {2, 3}
