"""What is removed from segments, what must be synced, and what happens when the disk fails."""

import pytest

from kafkaesque.config import LogConfig
from kafkaesque.errors import DiskFull
from kafkaesque.log.errors import CorruptLog, DiskFailed
from kafkaesque.sim.disk import DiskFaults
from tests.log.logs import (
    FOLDER,
    TINY,
    a_batch,
    a_disk,
    a_log,
    append,
    bases,
    contents,
    path,
    recover,
    sync,
    whole,
)

# --- removing -----------------------------------------------------------------------------------


def test_truncate_cuts_the_suffix_and_appends_continue_there() -> None:
    for offset in range(0, 60, 2):
        log = a_log(batches=30)
        kept = contents(log)[: offset // 2]
        log.truncate(offset)
        assert log.end_offset == offset
        assert contents(log) == kept
        append(log, 3, term=2)
        assert contents(log) == [*kept, *whole([a_batch(offset + n, term=2) for n in (0, 2, 4)])]


def test_truncate_at_the_end_changes_nothing() -> None:
    disk = a_disk()
    log = a_log(disk, batches=5)
    before = disk.operations
    log.truncate(10)
    assert (log.end_offset, disk.operations) == (10, before)


def test_truncate_behind_a_hole_ends_there_and_the_log_continues() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    log.append(a_batch(50).data)
    log.truncate(50)
    assert log.end_offset == 50
    point = sync(log)
    append(log, 20, term=1)
    expected = contents(log)
    sync(log)
    disk.crash()
    assert contents(recover(disk, point)) == expected


@pytest.mark.parametrize("place", [3, 6, 16, 26], ids=["base", "length", "magic", "delta"])
def test_a_cut_that_meets_damage_changes_nothing(place: int) -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    first = log.span(0)[0]
    disk.flip_bit(first.path, a_batch(0).size + place, 4)
    with pytest.raises(CorruptLog):
        log.truncate(4, has_holes=False)
    assert log.end_offset == 60 and len(log.bases) > 2
    segment, _ = log.span(log.active_base)
    disk.flip_bit(segment.path, 16, 3)
    log.truncate(segment.base)  # the start of a segment is known without reading
    assert log.end_offset == segment.base


def test_a_batch_that_spans_the_position_of_a_cut_is_damage_in_a_log_with_holes_too() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    disk.flip_bit(log.span(0)[0].path, a_batch(0).size + 26, 4)  # its last offset delta
    with pytest.raises(CorruptLog):
        log.truncate(4)
    assert log.end_offset == 60


def test_truncate_removes_later_segments_durably_before_it_cuts() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    sync(log)
    log.truncate(3 * 2)
    disk.crash()
    assert [name for name in disk.list(FOLDER) if name.endswith(".log")] == [f"{0:020d}.log"]


def test_a_segment_rolled_behind_a_cut_hole_is_named_by_the_last_batch() -> None:
    disk = a_disk()
    log = a_log(disk)
    point = sync(log)
    log.append(a_batch(0, fill=300).data)
    log.append(a_batch(50, fill=10).data)
    log.truncate(50)
    log.append(a_batch(50, fill=400).data)
    assert [info.base for info in list(log.each_info())] == [0, 2]
    expected = contents(log)
    sync(log)
    disk.crash()
    assert contents(recover(disk, point)) == expected


def test_a_cut_file_is_returned_for_syncing() -> None:
    log = a_log(batches=4)
    sync(log)
    log.truncate(2)
    files, _ = log.take_dirty()
    assert path(0) in [file.path for file in files]


def test_drop_before_removes_whole_segments_and_returns_how_much() -> None:
    log = a_log(batches=30)
    first, second, third = list(log.each_info())[:3]
    assert log.drop_before(second.end - 1) == first.bytes
    assert log.first_base == second.base
    freed = second.bytes
    assert log.drop_before(third.base) == freed
    assert log.first_base == third.base
    assert log.drop_before(third.base) == 0


def test_drop_before_always_keeps_the_active_segment() -> None:
    log = a_log(batches=30)
    active = list(log.each_info())[-1]
    log.drop_before(10_000)
    assert [info.base for info in list(log.each_info())] == [active.base]
    assert contents(log)[-1] == bytes(a_batch(58).data)


def test_reset_starts_over_at_another_offset() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    log.reset(500)
    assert (log.first_base, log.end_offset, log.size_bytes) == (500, 500, 0)
    assert disk.list(FOLDER) == [f"{500:020d}.log"]
    append(log, 2)
    assert bases(log.read(500, 1000)) == [500, 502]


# --- syncing ------------------------------------------------------------------------------------


def test_a_new_log_reports_its_folder_as_dirty() -> None:
    files, folders = a_log().take_dirty()
    assert (files, folders) == ([], [FOLDER])


def test_dirty_files_are_those_written_since_the_last_call() -> None:
    log = a_log(batches=1)
    log.take_dirty()
    append(log, 1)
    files, folders = log.take_dirty()
    assert ([file.path for file in files], folders) == ([path(0)], [])
    assert log.take_dirty() == ([], [])


def test_a_roll_makes_the_closed_segment_its_indexes_its_seal_and_the_folder_dirty() -> None:
    log = a_log()
    log.take_dirty()
    while len(list(log.each_info())) < 2:
        append(log, 1)
    files, folders = log.take_dirty()
    active = list(log.each_info())[1].base
    seals = f"{FOLDER}/seals.new"
    wanted = {path(0), path(0, ".index"), path(0, ".timeindex"), path(active), seals}
    assert ({file.path for file in files}, folders) == (wanted, [FOLDER])


def test_indexes_are_synced_only_now_and_then() -> None:
    config = LogConfig(index_interval_bytes=200, index_sync_bytes=1000)
    log = a_log(config=config)
    rounds = 0
    for _ in range(100):
        append(log, 1)
        rounds += any(file.path.endswith("index") for file in log.take_dirty()[0])
    assert rounds == pytest.approx(log.size_bytes / 1000, abs=3)


def test_removed_files_are_not_returned_for_syncing() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    log.truncate(2)
    append(log, 30)
    log.drop_before(40)
    files, folders = log.take_dirty()
    assert {file.path for file in files} <= {f"{FOLDER}/{name}" for name in disk.list(FOLDER)}
    assert (bool(files), folders) == (True, [FOLDER])


# --- faults -------------------------------------------------------------------------------------


def test_a_full_disk_refuses_an_append_and_accepts_it_when_there_is_room() -> None:
    disk = a_disk()
    log = a_log(disk, batches=3)
    before = contents(log)
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 30)
    with pytest.raises(DiskFull):
        append(log, 1)
    assert (log.end_offset, contents(log)) == (6, before)
    disk.faults = DiskFaults()
    append(log, 1)
    assert contents(log) == [*before, bytes(a_batch(6).data)]


def test_a_full_disk_at_a_roll_leaves_the_log_as_it_was() -> None:
    for room in range(0, 200, 8):
        disk = a_disk()
        log = a_log(disk)
        while log.size_bytes + a_batch(0).size <= TINY.segment_bytes_max:
            append(log, 1)
        before, end = contents(log), log.end_offset
        disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + room)
        with pytest.raises(DiskFull):
            append(log, 1)
        assert (log.end_offset, contents(log)) == (end, before)
        disk.faults = DiskFaults()
        append(log, 1)
        assert contents(log) == [*before, bytes(a_batch(end).data)]


def test_the_rest_of_a_failed_append_is_cut_off() -> None:
    disk = a_disk()
    log = a_log(disk, batches=1)
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 50)
    with pytest.raises(DiskFull):
        append(log, 1)
    assert disk.open(path(0)).size() == log.size_bytes


def test_a_failing_disk_is_distinguished_from_a_full_one() -> None:
    disk = a_disk()
    log = a_log(disk, batches=3)
    disk.fail_next_sync()
    with pytest.raises(DiskFailed):
        log.close()


def test_a_full_disk_does_not_prevent_the_log_from_syncing_its_data() -> None:
    disk = a_disk()
    config = LogConfig(index_interval_bytes=100, index_sync_bytes=300)
    log = a_log(disk, batches=10, config=config)
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes)
    files, _ = log.take_dirty()
    assert path(0) in [file.path for file in files]
