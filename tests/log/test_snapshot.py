"""Snapshots of both kinds: separate from each other, and written without waiting for the disk."""

import random

import pytest

from kafkaesque.errors import DiskFull
from kafkaesque.log import snapshot
from kafkaesque.log.snapshot import MACHINE, PRODUCERS
from kafkaesque.log.snapshot_pieces import read_piece
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost, SimDisk
from tests.sim.disks import Later

FOLDER = "orders"


def a_disk(later: Later | None = None, seed: int = 1) -> SimDisk:
    disk = SimDisk(random.Random(seed), later, faults=DiskFaults(page_bytes=16))
    disk.make_folder(FOLDER)
    return disk


def test_the_two_kinds_of_snapshot_are_separate() -> None:
    disk = a_disk()
    snapshot.write(disk, FOLDER, 5, b"producers", PRODUCERS)
    snapshot.write(disk, FOLDER, 7, b"machine", MACHINE)
    assert snapshot.load(disk, FOLDER, 9, PRODUCERS) == (5, b"producers")
    assert snapshot.load(disk, FOLDER, 9, MACHINE) == (7, b"machine")
    snapshot.remove(disk, FOLDER, 7, MACHINE)
    assert snapshot.offsets(disk, FOLDER, MACHINE) == []
    assert snapshot.offsets(disk, FOLDER, PRODUCERS) == [5]


def test_a_file_of_the_other_kind_is_skipped() -> None:
    disk = a_disk()
    snapshot.write(disk, FOLDER, 5, b"state", PRODUCERS)
    disk.rename(f"{FOLDER}/{5:020d}.snapshot", f"{FOLDER}/{5:020d}.machine")
    assert snapshot.load(disk, FOLDER, 5, MACHINE) is None


def test_no_piece_of_a_snapshot_with_a_bad_sector_is_served() -> None:
    disk = a_disk()
    snapshot.write(disk, FOLDER, 5, b"state", MACHINE)
    assert read_piece(disk, FOLDER, 5, MACHINE, 1, 3) == b"tat"
    disk.spoil(f"{FOLDER}/{5:020d}.machine", snapshot.HEADER_BYTES)
    assert not read_piece(disk, FOLDER, 5, MACHINE, 1, 3)


def test_a_snapshot_exists_once_it_is_reported_and_not_before() -> None:
    later = Later()
    disk = a_disk(later)
    told: list[OSError | None] = []
    snapshot.begin_write(disk, FOLDER, 5, b"state", MACHINE, told.append)
    assert snapshot.offsets(disk, FOLDER, MACHINE) == []
    while later.waiting:
        assert told == []
        later.play()
    assert told == [None]
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert snapshot.load(disk, FOLDER, 5, MACHINE) == (5, b"state")


def test_a_snapshot_without_disk_space_is_refused_at_once() -> None:
    disk = a_disk()
    disk.faults = DiskFaults(full_at_bytes=3)
    with pytest.raises(DiskFull):
        snapshot.begin_write(disk, FOLDER, 5, b"state", MACHINE, print)


@pytest.mark.parametrize("policy", CrashPolicy)
def test_a_crash_at_any_step_leaves_a_whole_snapshot_or_none(policy: CrashPolicy) -> None:
    for step in range(1, 7):
        for seed in range(10):
            disk = a_disk(seed=seed)
            disk.crash_after = disk.operations + step
            try:
                snapshot.begin_write(disk, FOLDER, 5, b"some pages of state", MACHINE, _ignore)
            except PowerLost:
                disk.crash(policy)
            found = snapshot.load(disk, FOLDER, 5, MACHINE)
            assert found in (None, (5, b"some pages of state"))


def _ignore(_: object) -> None:
    """No request waits for it."""
