"""A machine on a log: rebuilt from a snapshot and the tail, or from the whole log."""

import random
from contextlib import suppress

import pytest

from kafkaesque.broker.machine_hosting.machine_host import MachineHost
from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError, NewerFormat, NotLeader
from kafkaesque.log import snapshot
from kafkaesque.log.snapshot import MACHINE
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost, SimDisk
from kafkaesque.slices import Slices
from tests.broker.nodes import ALONE, GROUP, Node, heartbeat
from tests.log.logs import HandClock

SOON = LogConfig(snapshot_growth_bytes=200, snapshot_age_ms_max=1_000)
SLICED = LogConfig(snapshot_growth_bytes=200, snapshot_age_ms_max=1_000, slice_bytes=150)
"""One slice holds about one record."""


class Words:
    """Keeps the latest value of each key; counts the records applied."""

    def __init__(self) -> None:
        self.words: dict[bytes, bytes] = {}
        self.applied = 0

    def apply(self, record: MachineRecord) -> None:
        self.applied += 1
        if record.value is None:
            self.words.pop(record.key, None)
        else:
            self.words[record.key] = record.value

    def records(self) -> list[MachineRecord]:
        return [MachineRecord(key, value) for key, value in self.words.items()]


class Hosted:
    """A node that hosts a machine."""

    def __init__(self, config: LogConfig = SOON) -> None:
        self.config = config
        self.node = Node(ALONE)
        self.clock = HandClock()
        self.failures: list[LogError] = []
        self.ready: list[Words] = []
        self.host = self.start()

    def start(self) -> MachineHost[Words]:
        snapshots = MachineSnapshots(self.node.disk, GROUP, self.config)
        site = self.node.site(self.clock, self.failures, snapshots)
        self.host = MachineHost(site, Words, self.ready.append)
        self.node.replica.campaign()
        self.node.sync()
        return self.host

    def write(self, key: str, value: str | None) -> list[Outcome]:
        outcomes: list[Outcome] = []
        data = None if value is None else value.encode()
        self.host.write([MachineRecord(key.encode(), data)], outcomes.append)
        self.node.sync()
        return outcomes

    def tick(self) -> None:
        self.host.tick()
        self.node.sync()

    def restart(self, *, is_clean: bool = False) -> Words:
        if is_clean:
            self.host.stop()
            self.node.restart()
        else:
            self.node.disk.crash(CrashPolicy.DROP_UNSYNCED)
            self.node.start()
        return self.start().machine

    @property
    def store_slices(self) -> Slices:
        return self.node.store.slices

    @property
    def snapshots(self) -> list[int]:
        return snapshot.offsets(self.node.disk, GROUP, MACHINE)

    def newest_path(self) -> str:
        return f"{GROUP}/{self.snapshots[-1]:020d}.machine"


def _ignore(_: object) -> None:
    """No request waits for it."""


def filled(count: int = 5, config: LogConfig = SOON) -> Hosted:
    hosted = Hosted(config)
    for number in range(count):
        assert hosted.write(f"k{number}", "x" * 50) == [Outcome.COMMITTED]
    return hosted


def test_what_was_written_survives_a_crash() -> None:
    hosted = filled()
    assert hosted.restart().words == {b"k%d" % n: b"x" * 50 for n in range(5)}


def test_a_snapshot_is_taken_when_the_log_has_grown_and_only_the_tail_is_replayed() -> None:
    hosted = filled(1)
    hosted.tick()
    assert hosted.snapshots == []
    for number in range(4):
        hosted.write(f"k{number}", "x" * 50)
    hosted.tick()
    assert hosted.snapshots == [5]
    hosted.write("k9", "tail")
    machine = hosted.restart()
    assert machine.applied == 4 + 1  # four keys from the snapshot, one record after it
    assert machine.words[b"k9"] == b"tail"


def test_a_snapshot_is_taken_when_a_change_is_old_enough() -> None:
    hosted = filled(1)
    hosted.tick()
    hosted.clock.ms += 1_000
    hosted.tick()
    assert hosted.snapshots == [1]
    hosted.clock.ms += 10_000
    hosted.tick()
    assert hosted.snapshots == [1]  # nothing has changed since


def test_a_clean_stop_leaves_nothing_to_replay() -> None:
    hosted = filled(2)
    hosted.write("k0", None)
    machine = hosted.restart(is_clean=True)
    assert (machine.applied, machine.words) == (1, {b"k1": b"x" * 50})


def test_a_snapshot_contains_only_what_is_committed() -> None:
    hosted = filled()
    hosted.host.write([MachineRecord(b"late", b"x")], _ignore)
    hosted.host.tick()
    assert not [name for name in hosted.node.disk.list(GROUP) if "machine" in name]
    hosted.host.stop()
    assert hosted.snapshots == []


def test_only_the_two_newest_snapshots_are_kept() -> None:
    hosted = filled()
    hosted.tick()
    for number in range(10):
        hosted.write(f"k{number}", "y" * 50)
    hosted.tick()
    for number in range(10):
        hosted.write(f"k{number}", "z" * 100)
    hosted.tick()
    assert hosted.snapshots == [15, 25]


def test_a_damaged_snapshot_is_skipped_and_the_whole_log_is_replayed() -> None:
    hosted = filled()
    hosted.tick()
    hosted.node.disk.flip_bit(hosted.newest_path(), 30, 2)
    machine = hosted.restart()
    assert machine.applied == len(machine.words) == 5


def test_an_older_snapshot_replaces_a_damaged_one() -> None:
    hosted = filled()
    hosted.tick()
    for number in range(10):
        hosted.write(f"k{number}", "y" * 50)
    hosted.tick()
    assert hosted.snapshots == [5, 15]
    hosted.node.disk.flip_bit(hosted.newest_path(), 30, 2)
    machine = hosted.restart()
    assert machine.applied == 5 + 10
    assert machine.words == {b"k%d" % n: b"y" * 50 for n in range(10)}


def test_a_snapshot_beyond_the_end_of_the_log_is_skipped() -> None:
    hosted = filled(2)
    snapshot.write(hosted.node.disk, GROUP, 99, b"of another log", MACHINE)
    assert hosted.restart().applied == 2


def test_a_snapshot_of_a_later_version_is_not_skipped() -> None:
    hosted = filled(2)
    snapshot.write(hosted.node.disk, GROUP, 2, bytes.fromhex("920290"), MACHINE)
    with pytest.raises(NotLeader):
        hosted.restart()
    assert [type(error) for error in hosted.failures] == [NewerFormat]


def test_a_disk_without_room_for_a_snapshot_does_not_stop_the_machine() -> None:
    hosted = filled()
    disk = hosted.node.disk
    disk.faults = DiskFaults(page_bytes=16, full_at_bytes=disk.used_bytes + 5)
    hosted.tick()
    assert hosted.snapshots == []
    disk.faults = DiskFaults(page_bytes=16)
    assert hosted.write("k5", "y" * 300) == [Outcome.COMMITTED]
    hosted.tick()
    assert hosted.snapshots == [6]


def test_a_power_loss_at_any_step_of_a_snapshot_loses_nothing() -> None:
    for step in range(1, 7):
        hosted = filled()
        disk: SimDisk = hosted.node.disk
        disk.crash_after = disk.operations + step
        with suppress(PowerLost):
            hosted.tick()
        machine = hosted.restart()
        assert len(machine.words) == 5, f"power was lost at step {step}"


def test_waiting_requests_are_answered_when_leadership_is_lost() -> None:
    hosted = filled(1)
    lost: list[Words] = []
    hosted.host.on_lost = lost.append
    hosted.node.replica.stop(LogError("the disk is gone"))
    with pytest.raises(NotLeader):
        _ = hosted.host.machine
    hosted.host.tick()
    hosted.host.tick()
    assert len(lost) == 1


def test_snapshots_of_random_histories_match_the_log() -> None:
    chance = random.Random(7)
    hosted = Hosted()
    wanted: dict[bytes, bytes] = {}
    for _ in range(150):
        key, value = f"k{chance.randrange(8)}", f"v{chance.randrange(1000)}"
        if chance.random() < 0.3:
            hosted.write(key, None)
            wanted.pop(key.encode(), None)
        else:
            hosted.write(key, value)
            wanted[key.encode()] = value.encode()
        if chance.random() < 0.3:
            hosted.tick()
        if chance.random() < 0.1:
            hosted.restart(is_clean=chance.random() < 0.5)
        assert hosted.host.machine.words == wanted


def leading_again() -> Hosted:
    """Return a leader that has just started to rebuild its machine of five records."""
    hosted = filled(config=SLICED)
    hosted.node.restart()
    hosted.node.holds_syncs = True
    hosted.ready.clear()
    snapshots = MachineSnapshots(hosted.node.disk, GROUP, SLICED)
    site = hosted.node.site(hosted.clock, hosted.failures, snapshots)
    hosted.host = MachineHost(site, Words, hosted.ready.append)
    hosted.node.replica.campaign()
    while not hosted.host.is_loading:
        hosted.node.store.flusher.kick()
        hosted.node.later.play()
    return hosted


def test_a_new_leader_rebuilds_its_machine_in_slices() -> None:
    hosted = leading_again()
    slices = 0
    while hosted.host.is_loading:
        assert not hosted.host.is_hosted and not hosted.host.may_decide and not hosted.ready
        hosted.node.later.play()
        slices += 1
    assert slices > 3
    assert hosted.ready == [hosted.host.machine]
    assert len(hosted.host.machine.words) == 5


def test_a_leader_that_is_replaced_stops_rebuilding() -> None:
    hosted = leading_again()
    hosted.node.later.play()
    hosted.node.step(heartbeat(hosted.node.replica.raft.term + 1))
    assert not hosted.host.is_loading and not hosted.host.is_hosted
    hosted.node.sync()
    assert hosted.ready == [] and not hosted.store_slices.has_work


def test_a_snapshot_is_written_in_slices_while_the_machine_changes() -> None:
    hosted = filled(config=SLICED)
    hosted.host.tick()
    written = 0
    while hosted.snapshots == []:
        hosted.host.write([MachineRecord(b"k%d" % (written % 5), b"%d" % written)], _ignore)
        hosted.node.store.flusher.kick()
        hosted.node.later.play()
        written += 1
    assert written > 5
    assert hosted.snapshots == [5]
    offset, records = MachineSnapshots(hosted.node.disk, GROUP, SLICED).load(0, 100)
    assert (offset, dict(records)) == (5, {b"k%d" % n: b"x" * 50 for n in range(5)})
    hosted.node.sync()
    expected = dict(hosted.host.machine.words)
    assert hosted.restart().words == expected


def test_an_unfinished_snapshot_is_dropped_when_its_partition_is_removed() -> None:
    hosted = filled(config=SLICED)
    hosted.host.tick()
    for _ in range(3):
        hosted.node.later.play()
    hosted.host.close()
    hosted.node.sync()
    assert hosted.snapshots == [] and not hosted.store_slices.has_work


def grown(hosted: Hosted, value: str) -> None:
    for number in range(10):
        hosted.write(f"k{number}", value * 50)
    hosted.tick()


def test_a_leader_saves_its_state_if_both_earlier_snapshots_are_damaged() -> None:
    hosted = filled()
    hosted.tick()
    grown(hosted, "y")
    hosted.tick()
    assert hosted.snapshots == [5, 15] and hosted.node.replica.log.start.offset == 5
    for offset in hosted.snapshots:
        hosted.node.disk.flip_bit(snapshot.path_of(GROUP, offset, MACHINE), 30, 2)
    grown(hosted, "z")
    assert hosted.snapshots == [15, 25] and not hosted.failures
    assert hosted.restart().words == {b"k%d" % n: b"z" * 50 for n in range(10)}


def test_a_leader_without_room_for_its_snapshot_does_not_retry_at_each_tick() -> None:
    hosted = filled()
    hosted.tick()
    grown(hosted, "y")
    hosted.tick()
    disk = hosted.node.disk
    for offset in hosted.snapshots:
        disk.flip_bit(snapshot.path_of(GROUP, offset, MACHINE), 30, 2)
    for number in range(10):
        hosted.write(f"k{number}", "z" * 50)
    disk.faults = DiskFaults(page_bytes=16, full_at_bytes=disk.used_bytes + 5)
    hosted.tick()
    read = disk.bytes_read
    hosted.tick()
    assert disk.bytes_read == read
    assert hosted.snapshots == [5, 15] and not hosted.failures
