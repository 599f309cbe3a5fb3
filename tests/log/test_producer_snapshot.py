"""Producer snapshots are written atomically, and damaged ones are not used."""

import random

import pytest

from kafkaesque.errors import DiskFull, NewerFormat
from kafkaesque.log.producer_snapshot import (
    load_snapshot,
    remove_snapshot,
    snapshot_offsets,
    write_snapshot,
)
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost, SimDisk

FOLDER = "orders"
PATH = f"{FOLDER}/{70:020d}.snapshot"


def a_disk(seed: int = 1) -> SimDisk:
    disk = SimDisk(random.Random(seed), faults=DiskFaults(page_bytes=16))
    disk.make_folder(FOLDER)
    return disk


def test_a_new_folder_has_no_snapshot() -> None:
    assert load_snapshot(a_disk(), FOLDER, 100) is None


def test_the_newest_state_at_or_before_the_offset_is_loaded() -> None:
    disk = a_disk()
    for offset in (10, 70, 200):
        write_snapshot(disk, FOLDER, offset, b"state %d" % offset)
    assert load_snapshot(disk, FOLDER, 199) == (70, b"state 70")
    assert load_snapshot(disk, FOLDER, 200) == (200, b"state 200")
    assert load_snapshot(disk, FOLDER, 9) is None
    assert snapshot_offsets(disk, FOLDER) == [10, 70, 200]


def test_a_snapshot_has_the_documented_format() -> None:
    disk = a_disk()
    write_snapshot(disk, FOLDER, 70, b"123456789")
    # e3069283 is the check value of CRC-32C for these nine digits.
    wanted = bytes.fromhex("4b515053 0001 e3069283 00000009") + b"123456789"
    assert disk.open(PATH).read(0, 100) == wanted


def test_a_snapshot_is_durable_when_written() -> None:
    disk = a_disk()
    write_snapshot(disk, FOLDER, 70, b"state")
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert load_snapshot(disk, FOLDER, 70) == (70, b"state")


def test_a_snapshot_can_be_replaced_and_an_empty_state_is_valid() -> None:
    disk = a_disk()
    write_snapshot(disk, FOLDER, 70, b"state")
    write_snapshot(disk, FOLDER, 70, b"")
    assert load_snapshot(disk, FOLDER, 70) == (70, b"")


def test_a_removed_snapshot_is_gone() -> None:
    disk = a_disk()
    write_snapshot(disk, FOLDER, 70, b"state")
    remove_snapshot(disk, FOLDER, 70)
    remove_snapshot(disk, FOLDER, 70)
    assert snapshot_offsets(disk, FOLDER) == []


def test_a_damaged_snapshot_is_skipped_for_an_older_one() -> None:
    size = len(b"state of seventy") + 14
    for position in range(6, size):
        disk = a_disk()
        write_snapshot(disk, FOLDER, 10, b"older")
        write_snapshot(disk, FOLDER, 70, b"state of seventy")
        disk.flip_bit(PATH, position, 3)
        assert load_snapshot(disk, FOLDER, 100) == (10, b"older")


def test_a_truncated_snapshot_is_skipped() -> None:
    for length in range(len(b"state") + 14):
        disk = a_disk()
        write_snapshot(disk, FOLDER, 70, b"state")
        disk.open(PATH).truncate(length)
        assert load_snapshot(disk, FOLDER, 100) is None


def test_a_newer_format_is_refused() -> None:
    disk = a_disk()
    write_snapshot(disk, FOLDER, 70, b"state")
    disk.open(PATH).write(4, b"\0\2")
    with pytest.raises(NewerFormat) as refused:
        load_snapshot(disk, FOLDER, 70)
    assert (refused.value.found, refused.value.known) == (2, 1)


def test_a_foreign_file_is_skipped_for_an_older_snapshot() -> None:
    disk = a_disk()
    write_snapshot(disk, FOLDER, 10, b"older")
    disk.create(PATH).write(0, b"something else altogether")
    assert load_snapshot(disk, FOLDER, 70) == (10, b"older")


def test_a_full_disk_leaves_the_older_snapshot() -> None:
    disk = a_disk()
    write_snapshot(disk, FOLDER, 10, b"older")
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 5)
    with pytest.raises(DiskFull):
        write_snapshot(disk, FOLDER, 70, b"state")
    assert load_snapshot(disk, FOLDER, 100) == (10, b"older")
    disk.faults = DiskFaults()
    write_snapshot(disk, FOLDER, 70, b"state")
    assert load_snapshot(disk, FOLDER, 100) == (70, b"state")


@pytest.mark.parametrize("policy", CrashPolicy)
def test_a_crash_at_any_step_leaves_the_old_state_or_the_new(policy: CrashPolicy) -> None:
    for step in range(1, 7):
        for seed in range(20):
            disk = a_disk(seed)
            write_snapshot(disk, FOLDER, 70, b"the old state, some pages long")
            disk.crash_after = disk.operations + step
            try:
                write_snapshot(disk, FOLDER, 70, b"the new state, some pages long")
            except PowerLost:
                disk.crash(policy)
            found = load_snapshot(disk, FOLDER, 70)
            assert found is not None and found[1][4:7] in (b"old", b"new")
