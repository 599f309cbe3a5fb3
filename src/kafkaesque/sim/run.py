"""One seed from start to end: faults, then quiet, then final checks."""

from collections.abc import Iterable
from dataclasses import dataclass

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.sim.checks import Violation
from kafkaesque.sim.mischief import Mischief
from kafkaesque.sim.settings import Settings
from kafkaesque.sim.world import World
from kafkaesque.types import GroupId

STEPS = 1_500
"""How long a seed has faults by default; faults come every few hundred steps."""

_CRASHES = ("kills", "power losses", "power lost while writing")

_PEACE_STEPS_MAX = 60_000
"""After this many steps without faults a healthy cluster has long agreed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The events of one seed that kept every invariant."""

    seed: int
    steps: int
    counts: dict[str, int]


def run_seed(seed: int, steps: int = STEPS, settings: Settings | None = None) -> Report:
    """Run one seed; raises Violation, or any assertion of the code under test."""
    world = World(seed, settings)
    mischief = Mischief(world)
    mischief.begin()
    world.run(steps)
    mischief.stop()
    make_peace(world)
    check_end(world)
    counts = dict(world.counts)
    counts["acknowledged"] = sum(checks.acknowledged for checks in world.checks.values())
    counts["elections"] = sum(len(checks.leaders) for checks in world.checks.values())
    counts["messages dropped"] = world.network.dropped
    counts["torn writes"] = sum(node.disk.torn_writes for node in world.nodes.values())
    counts["crashes"] = sum(counts.get(kind, 0) for kind in _CRASHES)
    return Report(seed=seed, steps=world.steps, counts=counts)


def make_peace(world: World) -> None:
    """End all faults; every group must accept a write, and then all members must agree."""
    world.heal()
    before = {group: checks.acknowledged for group, checks in world.checks.items()}

    def is_serving() -> bool:
        world.heal()  # a sync that was doomed before may still fail a node
        return all(c.acknowledged > before[group] for group, c in world.checks.items())

    if not world.run_until(is_serving, _PEACE_STEPS_MAX):
        raise Violation("liveness: the healed cluster accepts no write")
    world.stop_clients()
    if not world.run_until(lambda: _is_of_one_mind(world), _PEACE_STEPS_MAX):
        raise Violation("liveness: the members of the healed cluster never agree")


def check_end(world: World) -> None:
    """Every member holds everything that was committed and not trimmed."""
    for group, checks in world.checks.items():
        leader = world.leader(group)
        assert leader is not None
        for replica in _members(world, leader):
            checks.holds_everything(replica)
        checks.all_proven()


def _is_of_one_mind(world: World) -> bool:
    world.heal()
    return all(_has_agreed(world, group) for group in world.checks)


def _has_agreed(world: World, group: GroupId) -> bool:
    leader = world.leader(group)
    if leader is None:
        return False
    replicas = list(_members(world, leader))
    alive = [node for node in leader.raft.voters.members if node in world.nodes]
    return len(replicas) == len(alive) and all(
        replica.raft.commit == replica.raft.end == leader.raft.end
        and replica.log.stable == replica.raft.end
        and not replica.raft.is_recovering
        for replica in replicas
    )


def _members(world: World, leader: Replica) -> Iterable[Replica]:
    for node in leader.raft.voters.members:
        machine = world.nodes.get(node)
        replica = None if machine is None else machine.replicas.get(leader.group)
        if replica is not None:
            yield replica
