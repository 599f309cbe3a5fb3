"""The indexes of a segment are hints, never the truth."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.segments import Segments
from kafkaesque.record.view import stamp
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, PowerLost, SimDisk
from tests.log.logs import (
    FOLDER,
    START_MS,
    TINY,
    a_disk,
    a_log,
    append,
    bases,
    contents,
    overwrite,
    path,
    recover,
    sync,
)
from tests.record.builders import GOLDEN


def reopened(disk: SimDisk, log: Segments) -> Segments:
    point = log.point()
    log.close()
    return recover(disk, point)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_rebuilt(suffix: str) -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    expected = contents(log)
    original = [
        bytes(disk.open(path(info.base, suffix)).read(0, 999))
        for info in list(log.each_info())[:-1]
    ]
    log.close()
    for info in list(log.each_info()):
        disk.remove(path(info.base, suffix))
    log = recover(disk, log.point())
    assert contents(log) == expected
    found = log.find_time(START_MS + 7)
    assert found is not None and bases(found) == [8]
    again = [
        bytes(disk.open(path(info.base, suffix)).read(0, 999))
        for info in list(log.each_info())[:-1]
    ]
    assert again == original


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_torn_or_foreign_index_does_not_mislead_a_lookup(suffix: str) -> None:
    size = a_disk_with_closed_segment()[0].open(path(0, suffix)).size()
    assert size > 0
    for position in range(size):
        for junk in (b"\0", b"\xff", b"\x01"):
            disk, log, expected = a_disk_with_closed_segment()
            overwrite(disk, path(0, suffix), position, junk)
            assert contents(log) == expected
            for wanted in range(0, 20, 2):
                found = log.find_time(START_MS + wanted)
                assert found is not None
                if suffix == ".index":
                    assert bases(found) == [wanted]


def test_an_index_cut_at_any_byte_is_completed() -> None:
    for suffix in (".index", ".timeindex"):
        size = a_disk_with_closed_segment()[0].open(path(0, suffix)).size()
        for length in range(0, size, 8 if suffix == ".index" else 1):
            disk, log, expected = a_disk_with_closed_segment()
            disk.open(path(0, suffix)).truncate(length)
            assert contents(log) == expected


def a_disk_with_closed_segment() -> tuple[SimDisk, Segments, list[bytes]]:
    disk = a_disk()
    log = a_log(disk, batches=15)
    expected = contents(log)
    return disk, reopened(disk, log), expected


def test_a_damaged_segment_is_reported_and_not_guessed_at() -> None:
    disk, log, _ = a_disk_with_closed_segment()
    overwrite(disk, path(0), 16, b"\7")
    with pytest.raises(CorruptLog) as damage:
        log.read(0, 1)
    assert (damage.value.path, damage.value.position) == (path(0), 0)


def test_indexes_of_a_few_closed_segments_stay_in_memory() -> None:
    disk = a_disk()
    log = reopened(disk, a_log(disk, batches=100))
    contents(log)
    loaded = [segment for segment in log._segments if segment.is_loaded]
    assert len(loaded) == TINY.indexes_loaded_max + 1


def without_offsets(disk: SimDisk) -> None:
    disk.remove(path(0, ".index"))


def without_times(disk: SimDisk) -> None:
    disk.remove(path(0, ".timeindex"))


def with_half_an_entry(disk: SimDisk) -> None:
    file = disk.open(path(0, ".timeindex"))
    file.truncate(file.size() - 5)


def with_zeros_for_entries(disk: SimDisk) -> None:
    file = disk.open(path(0, ".timeindex"))
    file.write(file.size() - 24, bytes(24))


@pytest.mark.parametrize(
    "damage", [without_offsets, without_times, with_half_an_entry, with_zeros_for_entries]
)
def test_a_crash_during_the_repair_of_an_index_does_not_mislead_a_lookup(
    damage: Callable[[SimDisk], None],
) -> None:
    for operation in range(1, 9):
        for seed in range(10):
            disk = a_disk(seed)
            log = a_log(disk, batches=15)
            log.close()
            damage(disk)
            disk.sync_now([disk.open(path(0))], [FOLDER])
            disk.crash(CrashPolicy.KEEP_ALL)
            log_again = recover(disk, log.point())
            disk.crash_after = disk.operations + operation
            with suppress(PowerLost):
                log_again.find_time(START_MS)
            disk.crash(CrashPolicy.TORN)
            assert_times_are_found(recover(disk, log.point()))


def assert_times_are_found(log: Segments) -> None:
    for wanted in range(0, 30, 2):
        found = log.find_time(START_MS + wanted)
        assert found is not None and bases(found) == [wanted]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_zeros_behind_an_index_are_cut_off(suffix: str) -> None:
    disk, log, expected = a_disk_with_closed_segment()
    file = disk.open(path(0, suffix))
    size = file.size()
    file.write(size, bytes(48))
    assert contents(log) == expected
    assert file.size() == size


@pytest.mark.parametrize("damage", [without_offsets, without_times, with_half_an_entry])
def test_on_a_full_disk_the_index_is_kept_in_memory(damage: Callable[[SimDisk], None]) -> None:
    for room in range(0, 200, 10):
        disk = a_disk()
        log = a_log(disk, batches=15)
        log.close()
        damage(disk)
        disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + room)
        assert_times_are_found(recover(disk, log.point()))
        disk.faults = DiskFaults()
        assert_times_are_found(recover(disk, log.point()))


def test_a_tail_recovered_on_a_full_disk_leaves_no_partial_index() -> None:
    disk = a_disk()
    log = a_log(disk, batches=4)
    point = sync(log)
    log.disk.sync_now(log._active.index.write(), [FOLDER])
    append(log, 11)
    assert len(list(log.each_info())) > 1
    disk.remove(path(0, ".index"))
    disk.open(path(0, ".timeindex")).truncate(12)
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes)
    log = recover(disk, point)
    disk.faults = DiskFaults()
    assert_times_are_found(recover(disk, log.point()))


def test_a_segment_has_the_documented_format() -> None:
    disk = a_disk()
    log = a_log(disk, start=1000)
    second = bytearray(GOLDEN)
    stamp(second, 1002, 7)
    for batch in (GOLDEN, second):
        log.append(batch)
    data = disk.open(path(1000)).read(0, 1000)
    assert len(data) == 168
    assert data[:12] == bytes.fromhex("00000000000003e8 00000048")
    assert data[84:96] == bytes.fromhex("00000000000003ea 00000048")
