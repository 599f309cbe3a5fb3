"""Copies with a damaged end are emptied one at a time, and only while most others are whole."""

import pytest

from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.record.view import split_batches
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.disk import SimDisk
from kafkaesque.types import GroupId, NodeId
from tests.sim.test_broker_repairs import copy, filled_world, has_copy, write_one
from tests.sim.test_broker_world import broker_of, leader_of, wait, write

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.complains(
        "damage_found partition=*", "refill_waits partition=*", "refill_begun partition=*"
    ),
]


def last_segment(disk: SimDisk, group: GroupId) -> str:
    names = [name for name in disk.list(group) if name.endswith(".log")]
    return f"{group}/{max(names)}"


class Damage:
    """Truncate the last segment of a copy while its broker is stopped."""

    def __init__(self, world: BrokerWorld, node: NodeId, group: GroupId) -> None:
        self._world = world
        self._machine = world.nodes[node]
        self._path = last_segment(self._machine.disk, group)
        self.group = group
        self.node = node
        world.act(self._machine, self._machine.stop_cleanly)
        file = self._machine.disk.open(self._path)
        self._data = file.read(0, file.size())
        assert self._data
        file.truncate(len(self._data) // 2)
        self._machine.disk.sync_now([file], [])
        file.close()
        self.names = self._machine.disk.list(group)

    @property
    def is_untouched(self) -> bool:
        if self._machine.disk.list(self.group) != self.names:
            return False
        file = self._machine.disk.open(self._path)
        size = file.size()
        file.close()
        return size == len(self._data) // 2

    @property
    def is_waiting(self) -> bool:
        broker = self._machine.broker
        wait = None if broker is None else broker.refills.waiting.get(self.group)
        return wait is not None and "no majority" in wait.reason

    def put_back(self) -> None:
        """Put the file back, like an operator who has a copy of it."""
        self._machine.kill()
        file = self._machine.disk.open(self._path)
        file.write(0, self._data)
        self._machine.disk.sync_now([file], [])
        file.close()


def damaged(world: BrokerWorld, nodes: list[NodeId], group: GroupId) -> list[Damage]:
    """Let copies lose their ends, and start their brokers again."""
    wait(world, lambda: is_of_one_mind(world))
    found = [Damage(world, node, group) for node in nodes]
    for one in found:
        world.rotten[group].add(one.node)
        world.start(world.nodes[one.node])
    return found


def are_whole(world: BrokerWorld) -> bool:
    brokers = [machine.broker for machine in world.nodes.values()]
    return is_of_one_mind(world) and all(
        broker is not None and not broker.refills.waiting for broker in brokers
    )


def has_leader(world: BrokerWorld) -> bool:
    is_up = len(world.able()) == len(world.nodes)
    return is_up and leader_of(world, "orders") is not None


def check_all(world: BrokerWorld, group: GroupId) -> None:
    world.rotten[group].clear()
    for node in world.nodes:
        replica = broker_of(world, node).replicas.by_group[group]
        assert not replica.raft.is_recovering
        world.groups[group].holds_everything(replica)


@pytest.mark.event("refill_begun", "replica_recovered")
@pytest.mark.parametrize("is_catalog", [False, True])
def test_one_of_three_copies_with_a_damaged_end_is_refilled_by_the_others(is_catalog: bool) -> None:
    world = filled_world()
    group = CATALOG_GROUP if is_catalog else copy(world, 1).group
    (damage,) = damaged(world, [2], group)
    wait(world, lambda: broker_of(world, 2).refills.done == 1)
    assert not damage.is_untouched
    wait(world, lambda: has_copy(world, 2, "orders") and has_leader(world))
    write_one(world)
    wait(world, lambda: are_whole(world))
    wait(world, lambda: not broker_of(world, 2).replicas.by_group[group].raft.is_recovering)
    check_all(world, group)


@pytest.mark.event("refill_waits")
@pytest.mark.parametrize("is_catalog", [False, True])
@pytest.mark.parametrize("nodes", [[1, 2], [2, 3], [1, 2, 3]])
def test_copies_with_damaged_ends_stay_as_they_are_while_most_are_not_whole(
    nodes: list[NodeId], is_catalog: bool
) -> None:
    world = filled_world()
    group = CATALOG_GROUP if is_catalog else copy(world, 1).group
    damages = damaged(world, nodes, group)
    wait(world, lambda: all(one.is_waiting for one in damages))
    world.run(2_000)
    assert all(one.is_untouched and one.is_waiting for one in damages)
    assert all(broker_of(world, one.node).refills.done == 0 for one in damages)
    # An operator restores the lost data, on all but one of the brokers.
    for one in damages[1:]:
        one.put_back()
        world.start(world.nodes[one.node])
    wait(world, lambda: broker_of(world, nodes[0]).refills.done == 1)
    wait(world, lambda: all(has_copy(world, node, "orders") for node in world.nodes))
    wait(world, lambda: has_leader(world))
    write_one(world)
    wait(world, lambda: are_whole(world))
    wait(world, lambda: not broker_of(world, nodes[0]).replicas.by_group[group].raft.is_recovering)
    check_all(world, group)
    assert all(broker_of(world, node).refills.done == 0 for node in nodes[1:])


@pytest.mark.complains("replica_stopped partition=orders.*")
def test_a_copy_that_cannot_be_cut_because_of_damage_is_refilled_while_its_broker_runs() -> None:
    world = filled_world()
    machine = leader_of(world, "orders")
    assert machine is not None
    replica = copy(world, machine.node)
    segments = replica.log.segments
    write_one(world)
    if segments.active_base == segments.end_offset - 1:
        write_one(world)
    active, _ = segments.span(segments.active_base)
    *_, last = split_batches(active.file.read(0, active.size))
    place = active.size - last.size
    others = [node for node in world.nodes if node != machine.node]
    for node in others:
        world.network.cut(machine.node, node)
        world.network.cut(node, machine.node)
    write(world, "orders")  # no other broker gets it
    broker = machine.broker
    world.rotten[replica.group].add(machine.node)
    machine.disk.flip_bit(active.path, place + 16, 3)  # of the batch before the cut
    group = world.groups[replica.group]
    wait(world, lambda: any(leads(world, node, replica.group) for node in others))
    world.network.heal()
    wait(world, lambda: replica.error is not None)
    assert broker is not None and broker is machine.broker
    wait(world, lambda: has_copy(world, machine.node, "orders"))
    wait(world, lambda: are_whole(world) and is_of_one_mind(world))
    assert broker.refills.done == 1 and broker is machine.broker
    world.rotten[replica.group].clear()
    group.holds_everything(copy(world, machine.node))
    write_one(world)
    assert not copy(world, machine.node).raft.is_recovering


def leads(world: BrokerWorld, node: NodeId, group: GroupId) -> bool:
    return broker_of(world, node).replicas.by_group[group].is_serving
