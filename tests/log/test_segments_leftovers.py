"""Opening segments after an interrupted trim, reset or compaction."""

from dataclasses import replace

import pytest

from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.seals import Seals
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.log.segments_recovery import discard_segments
from kafkaesque.sim.disk import CrashPolicy, SimDisk
from tests.log.logs import (
    FOLDER,
    TINY,
    HandClock,
    a_batch,
    a_disk,
    a_log,
    append,
    bases,
    contents,
    path,
    recover,
    sync,
)

KEEP, DROP = CrashPolicy.KEEP_ALL, CrashPolicy.DROP_UNSYNCED


def names(disk: SimDisk) -> list[str]:
    return disk.list(FOLDER)


def stopped(log: Segments) -> SyncedPoint:
    log.close()
    return log.point()


def test_segments_below_the_start_are_removed() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    second = list(log.each_info())[1].base
    point = stopped(log)
    log = recover(disk, point, start=second + 1)
    assert log.first_base == second
    assert not any(name.startswith(f"{0:020d}") for name in names(disk))


def test_a_half_removed_segment_below_the_start_is_removed_too() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    second = list(log.each_info())[1].base
    point = stopped(log)
    disk.remove(path(0))
    assert recover(disk, point, start=second).first_base == second
    assert not any(name.startswith(f"{0:020d}") for name in names(disk))


def test_a_synced_point_in_a_dropped_segment_is_void() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    append(log, 28)
    sync(log)
    second = list(log.each_info())[1].base
    expected = contents(log)
    log.drop_before(second)
    disk.crash(KEEP)
    log = recover(disk, point, start=second)
    assert contents(log) == expected[-len(contents(log)) :]
    assert (log.first_base, log.end_offset) == (second, 60)


def test_an_interrupted_reset_is_completed() -> None:
    for surviving in range(1, 4):
        disk = a_disk()
        log = a_log(disk, batches=30)
        point = stopped(log)
        for info in list(log.each_info())[surviving:]:
            for suffix in (".log", ".index", ".timeindex"):
                if f"{info.base:020d}{suffix}" in names(disk):
                    disk.remove(path(info.base, suffix))
        log = recover(disk, point, start=500)
        assert (log.first_base, log.end_offset, contents(log)) == (500, 500, [])
        assert names(disk) == [f"{500:020d}.log", "seals"]
        assert Seals.load(disk, FOLDER).all() == []


def test_unfinished_compactions_are_removed_and_unknown_files_are_not() -> None:
    disk = a_disk()
    point = stopped(a_log(disk, batches=3))
    strangers = ["00000000000000000000.snapshot", "1.log", "manifest", "0" * 20 + ".log.bak"]
    for name in [*strangers, "0" * 20 + ".log.cleaned"]:
        disk.create(f"{FOLDER}/{name}")
    recover(disk, point)
    assert set(strangers) <= set(names(disk))
    assert not any(name.endswith(".cleaned") for name in names(disk))


def test_the_age_of_the_open_segment_survives_a_restart() -> None:
    disk = a_disk()
    point = stopped(a_log(disk, batches=1))
    clock = HandClock()
    clock.ms += TINY.segment_age_ms_max + 1
    log = Segments.recover(
        disk, FOLDER, TINY, clock, start_offset=0, synced=point, term_at=lambda _: 1
    )
    append(log, 1)
    assert [info.base for info in list(log.each_info())] == [0, 2]


def test_without_seals_a_hole_between_segments_may_come_from_compaction() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    second = list(log.each_info())[1]
    point = stopped(log)
    disk.remove(f"{FOLDER}/seals")
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(path(second.base, suffix))
    log = recover(disk, point)
    assert bases(log.read(second.base, 1)) == [second.end]
    assert log.batch_base(second.base + 1) == second.end


def test_the_greatest_timestamp_is_known_after_every_kind_of_stop() -> None:
    times = [50, 90, 10, 20, 95, 30, 40, 41, 42, 43]
    for policy in (KEEP, DROP):
        disk = a_disk()
        log = a_log(disk, config=replace(TINY, segment_bytes_max=1 << 20, index_sync_bytes=1))
        for base, time in enumerate(times):
            log.append(a_batch(base, count=1, at_ms=time).data)
            point = sync(log)
        disk.crash(policy)
        log = recover(disk, point)
        assert next(iter(log.each_info())).max_timestamp_ms == 95
        for wanted, base in ((1, 0), (51, 1), (91, 4)):
            found = log.find_time(wanted)
            assert found is not None and bases(found) == [base]


def test_a_damaged_log_can_be_discarded_and_started_over() -> None:
    disk = a_disk()
    point = stopped(a_log(disk, batches=30))
    disk.create(f"{FOLDER}/manifest")
    disk.open(path(point.segment_base)).truncate(0)
    with pytest.raises(CorruptLog):
        recover(disk, point)
    discard_segments(disk, FOLDER, only_empty=False)
    log = a_log(disk, start=10)
    append(log, 1)
    assert names(disk) == [f"{10:020d}.log", "manifest"]
