"""Each kind of fault really happens, does what its name says, and can be injected alone."""

import pytest

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.config import LogConfig
from kafkaesque.entry import Voters
from kafkaesque.sim.mischief import Mischief
from kafkaesque.sim.run import check_end, make_peace, run_seed
from kafkaesque.sim.settings import Faults, Settings
from kafkaesque.sim.story import values_on_disk
from kafkaesque.sim.world import World

GROUP = "group-0"
STEPS = 1_200
SEEDS = range(4)
"""What one seed happens not to show another one does, also after the next change of the code."""

COUNTERS = {
    "kills": {"kills", "clean stops"},
    "power_losses": {"power losses", "power lost while writing"},
    "cuts": {"cuts"},
    "transfers": {"transfers"},
    "voter_changes": {"voter changes"},
    "wipes": {"wipes"},
    "bit_flips": {"bits flipped", "segments lost"},
    "sync_failures": {"sync failures"},
    "full_disks": {"full disks"},
    "slow_disks": {"slow disks"},
    "trims": {"trims"},
    "compactions": {"compactions"},
}
FAULT_COUNTERS = frozenset().union(*COUNTERS.values())


def only(*kinds: str) -> Settings:
    """A quick cluster with small segments in which only these faults happen, often."""
    faults = Faults(pause_mean=60, **dict.fromkeys(kinds, True))
    log = LogConfig(segment_bytes_max=500, index_interval_bytes=100)
    return Settings(nodes=3, write_pause_max=6, log=log, faults=faults)


def troubled(*kinds: str, steps: int = STEPS) -> list[World]:
    """Some worlds after their faults and before their recovery."""
    worlds = []
    for seed in SEEDS:
        world = World(seed, only(*kinds))
        mischief = Mischief(world)
        mischief.begin()
        world.run(steps)
        mischief.stop()
        worlds.append(world)
    return worlds


def replicas(worlds: list[World]) -> list[Replica]:
    return [
        replica
        for world in worlds
        for machine in world.nodes.values()
        for replica in machine.replicas.values()
    ]


def test_every_fault_has_a_counter() -> None:
    assert COUNTERS.keys() == {name for name in Faults.__slots__ if name != "pause_mean"}


@pytest.mark.complains("damage_found partition=group-0 offset=*")
@pytest.mark.parametrize("kind", COUNTERS)
def test_only_the_requested_fault_happens(kind: str) -> None:
    reports = [run_seed(seed, STEPS, only(kind)) for seed in SEEDS]
    happened = set().union(*(report.counts for report in reports)) & FAULT_COUNTERS
    assert happened == COUNTERS[kind]


def test_without_faults_nothing_breaks() -> None:
    report = run_seed(1, STEPS, only())
    assert not report.counts.keys() & FAULT_COUNTERS
    assert report.counts["messages dropped"] == 0
    assert report.counts["elections"] == 1


def test_cuts_lose_messages() -> None:
    assert any(world.network.dropped for world in troubled("cuts"))


def test_transfers_change_the_leader() -> None:
    leaders = [set(world.checks[GROUP].leaders.values()) for world in troubled("transfers")]
    assert any(len(each) > 1 for each in leaders)


def test_voters_are_removed_and_learn_and_vote_again() -> None:
    changes = [
        entry.payload
        for world in troubled("voter_changes")
        for entry in world.checks[GROUP].committed.values()
        if isinstance(entry.payload, Voters)
    ]
    assert any(change.learners for change in changes)
    assert {len(change.voters) for change in changes} >= {2, 3}


def test_a_wiped_machine_returns_with_a_new_identity() -> None:
    worlds = troubled("wipes")
    assert all(len(world.nodes) == 3 for world in worlds)
    assert any(max(world.nodes) > 3 for world in worlds)


@pytest.mark.complains("damage_found partition=group-0 offset=*")
def test_flipped_bits_damage_only_one_machine_and_peers_refill_it() -> None:
    worlds = [world for world in troubled("bit_flips") if world.damaged]
    assert worlds
    for world in worlds:
        assert len(world.damaged) == 1
        make_peace(world)
        check_end(world)
    assert not any(replica.raft.is_recovering for replica in replicas(worlds))


def test_trims_move_the_start_of_logs() -> None:
    assert any(replica.log.start.offset > 0 for replica in replicas(troubled("trims")))


def test_compaction_leaves_holes_where_records_were_superseded() -> None:
    worlds = troubled("compactions", steps=2 * STEPS)
    assert any(len(values_on_disk(each)) < each.log.end_offset for each in replicas(worlds))


def test_a_full_disk_stops_no_broker_and_writes_resume_later() -> None:
    world = World(3, only("full_disks"))
    mischief = Mischief(world)
    mischief.begin()

    def is_full() -> bool:
        return any(replica.log.is_full for replica in replicas([world]))

    assert world.run_until(is_full, 50_000)
    mischief.stop()
    world.heal()
    assert world.run_until(lambda: not is_full(), 5_000)
    assert all(node.is_up and node.error is None for node in world.nodes.values())


def test_after_healing_no_more_faults_happen() -> None:
    for world in troubled("kills", "cuts"):
        counted = {kind: world.counts.get(kind) for kind in ("kills", "clean stops", "cuts")}
        world.heal()
        world.run(STEPS)
        assert {kind: world.counts.get(kind) for kind in counted} == counted
