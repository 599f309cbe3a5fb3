"""The simulated disk: its syncs in time, its faults, and its power switch."""

import errno
import random

import pytest

from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost, SimDisk
from tests.sim.disks import SMALL_PAGES, Later, contents, durable_file, new_disk

SEEDS = range(100)
DROP, KEEP = CrashPolicy.DROP_UNSYNCED, CrashPolicy.KEEP_ALL


def test_handles_are_invalid_after_a_crash() -> None:
    disk = new_disk()
    durable_file(disk, "a", b"abc")
    file = disk.open("a")
    disk.crash(KEEP)
    for use in (
        lambda: file.read(0, 1),
        lambda: file.write(0, b"x"),
        lambda: file.size(),
        lambda: file.truncate(0),
        lambda: disk.sync_now([file], []),
    ):
        with pytest.raises(AssertionError, match="crashed"):
            use()
    file.close()
    assert contents(disk, "a") == b"abc"


def test_a_sync_covers_writes_before_the_call_and_only_when_complete() -> None:
    for completed, expected in ((False, b""), (True, b"before")):
        later = Later()
        disk = SimDisk(random.Random(1), later, SMALL_PAGES)
        durable_file(disk, "a", b"")
        file = disk.open("a")
        file.write(0, b"before")
        errors: list[OSError | None] = []
        disk.sync([file], [], errors.append)
        file.write(6, b"after")
        assert errors == []
        if completed:
            later.play()
            assert errors == [None]
        disk.crash(DROP)
        assert contents(disk, "a") == expected


def test_a_folder_sync_covers_the_names_before_the_call() -> None:
    later = Later()
    disk = SimDisk(random.Random(1), later, SMALL_PAGES)
    disk.create("a")
    disk.sync([], [""], lambda error: None)
    disk.create("b")
    later.play()
    disk.crash(DROP)
    assert disk.list("") == ["a"]


def test_syncs_may_complete_in_another_order() -> None:
    later = Later()
    disk = SimDisk(random.Random(1), later, SMALL_PAGES)
    durable_file(disk, "a", b"")
    file = disk.open("a")
    file.write(0, b"1")
    disk.sync([file], [], lambda error: None)
    file.write(1, b"2")
    disk.sync([file], [], lambda error: None)
    file.write(2, b"3")
    later.play(1)
    later.play(0)
    assert file.read(0, 9) == b"123"
    disk.crash(DROP)
    assert contents(disk, "a") == b"12"


def test_a_sync_in_progress_when_the_power_fails_never_completes() -> None:
    later = Later()
    disk = SimDisk(random.Random(1), later, SMALL_PAGES)
    durable_file(disk, "a", b"")
    file = disk.open("a")
    file.write(0, b"abc")
    errors: list[OSError | None] = []
    disk.sync([file], [], errors.append)
    disk.crash(DROP)
    later.play()
    assert errors == []
    assert contents(disk, "a") == b""


def test_syncs_take_as_long_as_the_faults_say() -> None:
    later = Later()
    faults = DiskFaults(sync_delay_min=3, sync_delay_max=5)
    disk = SimDisk(random.Random(1), later, faults)
    for _ in range(100):
        disk.sync([], [], lambda error: None)
    assert {delay for delay, _ in later.waiting} == {3, 4, 5}
    disk.faults = DiskFaults(sync_delay_min=1000, sync_delay_max=1000)
    disk.sync([], [], lambda error: None)
    assert later.waiting[-1][0] == 1000


@pytest.mark.parametrize("policy", list(CrashPolicy))
def test_data_of_a_failed_sync_is_undecided_until_the_crash(policy: CrashPolicy) -> None:
    disk = new_disk()
    durable_file(disk, "a", b"old")
    file = disk.open("a")
    file.write(3, b"lost")
    disk.fail_next_sync()
    errors: list[OSError | None] = []
    disk.sync([file], [], errors.append)
    assert [error.errno for error in errors if error] == [errno.EIO]
    assert file.read(0, 99) == b"oldlost"
    file.write(7, b"new")
    disk.sync_now([file], [])
    assert file.read(0, 99) == b"oldlostnew"
    disk.crash(policy)
    assert contents(disk, "a") == b"old\0\0\0\0new"


def test_names_of_a_failed_folder_sync_are_covered_by_the_next_one() -> None:
    disk = new_disk()
    disk.create("a")
    disk.fail_next_sync()
    with pytest.raises(OSError, match="failed"):
        disk.sync_now([], [""])
    disk.create("b")
    disk.sync_now([], [""])
    disk.create("c")
    disk.crash(DROP)
    assert disk.list("") == ["a", "b"]


def test_only_the_next_sync_fails() -> None:
    disk = new_disk()
    disk.fail_next_sync()
    errors: list[OSError | None] = []
    disk.sync([], [], errors.append)
    disk.sync([], [], errors.append)
    assert errors[0] is not None
    assert errors[1] is None


def test_a_full_disk_writes_a_part_and_reports_it() -> None:
    disk = new_disk(faults=DiskFaults(full_at_bytes=10))
    durable_file(disk, "a", b"123456")
    file = disk.create("b")
    with pytest.raises(OSError, match="full") as full:
        file.write(0, b"abcdef")
    assert full.value.errno == errno.ENOSPC
    assert file.read(0, 99) == b"abcd"
    assert disk.used_bytes == 10
    with pytest.raises(OSError, match="full"):
        file.write(4, b"e")
    file.write(0, b"ABCD")
    with pytest.raises(OSError, match="full"):
        file.write(2, b"xyz")
    assert file.read(0, 99) == b"ABxy"


def test_cutting_removing_replacing_and_more_space_free_room() -> None:
    disk = new_disk(faults=DiskFaults(full_at_bytes=9))
    for name in "abc":
        durable_file(disk, name, b"123")
    disk.open("a").truncate(1)
    assert disk.used_bytes == 7
    gone = disk.open("b")
    disk.remove("b")
    assert disk.used_bytes == 4
    gone.write(3, b"456789")
    assert disk.used_bytes == 4
    disk.rename("c", "a")
    assert disk.used_bytes == 3
    disk.crash(DROP)
    assert disk.used_bytes == 9
    disk.faults = DiskFaults()
    disk.open("a").write(3, b"4")
    assert disk.used_bytes == 10


def test_a_flipped_bit_is_read_now_and_after_a_crash() -> None:
    for overwrite in (False, True):
        disk = new_disk()
        durable_file(disk, "a", b"\0\0\0")
        if overwrite:
            disk.open("a").write(0, b"\1")
        disk.flip_bit("a", 1, 7)
        assert disk.open("a").read(1, 2) == b"\x80\0"
        disk.crash(DROP)
        assert contents(disk, "a") == b"\0\x80\0"


class TickingClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def test_files_know_their_modification_time() -> None:
    clock = TickingClock()
    disk = SimDisk(random.Random(1), clock=clock)
    clock.ms = 5
    file = disk.create("a")
    assert file.modified_ms() == 5
    clock.ms = 6
    file.write(0, b"abc")
    assert file.modified_ms() == 6
    clock.ms = 7
    file.truncate(0)
    assert file.modified_ms() == 7


def replace_a_file(disk: SimDisk) -> None:
    """The usual way to replace a small file atomically: eight operations, with the old one's."""
    durable_file(disk, "a", b"old")
    file = disk.create("a.new")
    file.write(0, b"new")
    disk.sync_now([file], [])
    disk.rename("a.new", "a")
    disk.sync_now([], [""])


def test_every_operation_is_counted() -> None:
    disk = new_disk()
    replace_a_file(disk)
    assert disk.operations == 8
    disk.make_folder("t")
    disk.remove("a")
    disk.create("b").truncate(0)
    disk.sync([], [], lambda error: None)
    assert disk.operations == 13


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("policy", list(CrashPolicy))
def test_a_file_replaced_correctly_is_old_or_new_wherever_the_power_fails(
    policy: CrashPolicy,
) -> None:
    for operation in range(4, 9):
        for seed in range(20):
            disk = new_disk(seed)
            disk.crash_after = operation
            with pytest.raises(PowerLost):
                replace_a_file(disk)
            assert disk.operations == operation
            disk.crash(policy)
            assert contents(disk, "a") in (b"old", b"new")


def test_the_power_stays_off_until_the_crash() -> None:
    later = Later()
    disk = SimDisk(random.Random(1), later)
    file = disk.create("a")
    errors: list[OSError | None] = []
    disk.sync([file], [], errors.append)
    disk.crash_after = disk.operations + 1
    with pytest.raises(PowerLost):
        disk.create("b")
    with pytest.raises(PowerLost):
        file.write(0, b"x")
    with pytest.raises(PowerLost):
        disk.sync_now([file], [])
    later.play()
    assert errors == []
    disk.crash(KEEP)
    assert disk.list("") == ["a"]
    assert disk.crash_after is None
    assert contents(disk, "a") == b""
    disk.create("b")


def test_the_power_can_fail_in_the_middle_of_a_write() -> None:
    found = set()
    for seed in SEEDS:
        disk = new_disk(seed)
        durable_file(disk, "a", b"")
        disk.crash_after = disk.operations + 1
        with pytest.raises(PowerLost):
            disk.open("a").write(0, b"abc")
        disk.crash(KEEP)
        found.add(contents(disk, "a"))
    assert found == {b"", b"a", b"ab", b"abc"}


def test_losing_power_is_not_an_ordinary_error() -> None:
    assert not issubclass(PowerLost, Exception)
