"""A broker whose machine was restored from an image: others remember more of it than it does."""

import pytest

from kafkaesque.broker.watermark import Outcome
from kafkaesque.errors import OldCopy
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.inode import Folder
from tests.sim.test_broker_growth import pass_ms
from tests.sim.test_broker_world import create, leader_of, ready_world, wait, write

OLD = 3


def a_world() -> BrokerWorld:
    world = ready_world()
    assert create(world, 1, "orders", partitions=3) is None
    wait(world, lambda: is_of_one_mind(world))
    return world


def live_on(world: BrokerWorld) -> None:
    """Let every partition take a record, and the brokers hear of each other."""
    for index in range(3):
        outcomes = write(world, "orders", index)
        wait(world, lambda outcomes=outcomes: outcomes == [Outcome.COMMITTED])  # type: ignore[misc]
    pass_ms(world, 1_000)


def restored(world: BrokerWorld, image: dict[str, Folder]) -> None:
    machine = world.nodes[OLD]
    machine.lose_power()
    machine.disk.restore(image)
    world.start(machine)


def is_found(world: BrokerWorld) -> bool:
    return not world.nodes[OLD].is_up


def check_refused(world: BrokerWorld) -> None:
    wait(world, lambda: is_found(world))
    with pytest.raises(OldCopy, match="an old copy"):
        world.nodes[OLD].start()
    wait(world, lambda: leader_of(world, "orders", 0) is not None)
    outcomes = write(world, "orders", 0)
    wait(world, lambda: outcomes == [Outcome.COMMITTED])


def test_an_image_of_a_stopped_broker_that_ran_again_later_is_found() -> None:
    world = a_world()
    machine = world.nodes[OLD]
    machine.stop_cleanly()
    image = machine.disk.image()
    world.start(machine)
    wait(world, lambda: is_of_one_mind(world))
    live_on(world)
    restored(world, image)
    check_refused(world)


def test_an_image_of_the_same_run_is_found_by_the_round_of_its_journal() -> None:
    world = a_world()
    live_on(world)
    image = world.nodes[OLD].disk.image()
    live_on(world)
    restored(world, image)
    check_refused(world)


def test_a_broker_that_was_killed_or_lost_power_is_no_old_copy() -> None:
    world = a_world()
    machine = world.nodes[OLD]
    for stop in (machine.kill, machine.lose_power, machine.stop_cleanly, machine.kill):
        live_on(world)
        stop()
        pass_ms(world, 500)
        world.start(machine)
        wait(world, lambda: is_of_one_mind(world))
        pass_ms(world, 500)
        assert machine.is_up


def test_the_others_may_have_restarted_meanwhile() -> None:
    world = a_world()
    live_on(world)
    image = world.nodes[OLD].disk.image()
    live_on(world)
    world.nodes[OLD].lose_power()
    for node in (1, 2):
        world.nodes[node].stop_cleanly()
        world.start(world.nodes[node])
    restored(world, image)
    wait(world, lambda: is_found(world))
