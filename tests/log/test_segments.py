"""A partition's open segments: appending, rolling, looking up, removing."""

from dataclasses import replace

import pytest

from kafkaesque.config import LogConfig
from kafkaesque.errors import DiskFull
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.log.offset_index import RELATIVE_MAX
from kafkaesque.log.segment import RUN_BYTES_MAX, TAIL_BYTES_MAX
from kafkaesque.record.view import BatchView
from tests.log.logs import (
    FOLDER,
    START_MS,
    TINY,
    HandClock,
    a_batch,
    a_disk,
    a_log,
    append,
    bases,
    contents,
    whole,
)


def test_a_new_log_is_empty_and_starts_at_the_given_offset() -> None:
    log = a_log(start=70)
    assert (log.first_base, log.end_offset, log.size_bytes) == (70, 70, 0)
    assert len(log.read(70, 100)) == 0
    assert log.batch_base(70) == 70
    assert log.find_time(0) is None
    assert log.newest_time() is None


@pytest.mark.requirement("LOG-1")
def test_appended_batches_are_read_back_byte_for_byte() -> None:
    log = a_log()
    views = [a_batch(base) for base in range(0, 60, 2)]
    for view in views:
        log.append(view.data)
    assert contents(log) == whole(views)
    assert log.size_bytes == sum(view.size for view in views)


@pytest.mark.requirement("LOG-1")
def test_segments_are_named_by_their_first_offset_and_roll_at_their_size() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    infos = list(log.each_info())
    assert len(infos) > 2
    assert [info.bytes <= TINY.segment_bytes_max for info in infos] == [True] * len(infos)
    logs = [name for name in disk.list(FOLDER) if name.endswith(".log")]
    assert logs == [f"{info.base:020d}.log" for info in infos]
    assert [info.end for info in infos] == [*(info.base for info in infos[1:]), 60]
    assert [info.is_active for info in infos] == [False] * (len(infos) - 1) + [True]


def test_small_batches_are_written_with_one_write_and_stored_as_if_written_one_by_one() -> None:
    views = [a_batch(base, at_ms=START_MS + base) for base in range(0, 20, 2)]
    config = replace(TINY, segment_bytes_max=1 << 20)
    disk = a_disk()
    together, apart = a_log(disk, config=config), a_log(config=config)
    writes = disk.writes
    assert together.append(*[view.data for view in views]) == len(views)
    assert disk.writes == writes + 1
    for view in views:
        apart.append(view.data)
    assert contents(together) == contents(apart) == whole(views)
    for view in views:
        for log in (together, apart):
            assert log.batch_base(view.last_offset) == view.base_offset
            assert bytes(log.find_time(view.max_timestamp_ms) or b"") == bytes(view.data)
    assert together.tail(18) == apart.tail(18) == views[-1].data


def test_batches_are_written_together_only_as_far_as_they_fit_into_a_segment() -> None:
    log = a_log()
    views = [a_batch(base, count=1, fill=TINY.segment_bytes_max // 4) for base in range(20)]
    left = [view.data for view in views]
    counts = []
    while left:
        counts.append(log.append(*left))
        del left[: counts[-1]]
    assert 1 < max(counts) < len(views)
    assert all(info.bytes <= TINY.segment_bytes_max for info in log.each_info())
    assert contents(log) == whole(views)


def test_a_large_batch_is_not_copied_for_a_joint_write() -> None:
    log = a_log(config=replace(TINY, segment_bytes_max=1 << 30))
    small, large = a_batch(0), a_batch(2, fill=RUN_BYTES_MAX)
    assert log.append(small.data, large.data) == 1
    assert log.append(large.data, a_batch(4).data) == 1


def test_without_room_none_of_the_batches_written_together_is_there() -> None:
    disk = a_disk()
    log = a_log(disk, batches=1)
    before = contents(log)
    disk.faults = replace(disk.faults, full_at_bytes=disk.used_bytes + 150)
    with pytest.raises(DiskFull):
        log.append(a_batch(2).data, a_batch(4, fill=100).data)
    assert (log.end_offset, contents(log)) == (2, before)


def test_a_batch_larger_than_a_segment_gets_a_segment_of_its_own() -> None:
    log = a_log(batches=1)
    log.append(a_batch(2, fill=2000).data)
    append(log, 1)
    assert [info.base for info in list(log.each_info())] == [0, 2, 4]
    assert BatchView(log.read(3, 1)).base_offset == 2


def test_an_old_segment_is_rolled_so_that_retention_can_act() -> None:
    clock = HandClock()
    log = a_log(batches=1, clock=clock)
    clock.ms += TINY.segment_age_ms_max
    append(log, 1)
    assert len(list(log.each_info())) == 1
    clock.ms += 1
    append(log, 1)
    assert [info.base for info in list(log.each_info())] == [0, 4]


def test_a_segment_rolls_before_its_relative_offsets_overflow() -> None:
    log = a_log(batches=1)
    log.append(a_batch(RELATIVE_MAX - 1, count=1).data)
    log.append(a_batch(RELATIVE_MAX, count=1).data)
    assert [info.base for info in list(log.each_info())] == [0, RELATIVE_MAX]


def test_a_hole_too_wide_for_the_index_is_still_found() -> None:
    log = a_log(batches=8)
    before = log.end_offset
    far = 10 * RELATIVE_MAX
    log.append(a_batch(far, count=1, at_ms=START_MS + 500).data)
    log.append(a_batch(far + 1, count=1, at_ms=START_MS + 400).data)
    assert log.batch_base(before) == far
    assert log.batch_base(far) == far
    found = log.find_time(START_MS + 450)
    assert found is not None and bases(found) == [far]
    log.close()


def test_a_segment_behind_a_hole_is_named_by_the_end_before_the_hole() -> None:
    log = a_log(batches=1)
    log.append(a_batch(100, fill=900).data)
    assert [info.base for info in list(log.each_info())] == [0, 2]
    assert log.batch_base(50) == 100


def test_a_log_full_of_holes_still_rolls() -> None:
    log = a_log()
    for base in range(0, 1000, 10):
        log.append(a_batch(base).data)
    assert max(info.bytes for info in list(log.each_info())) <= TINY.segment_bytes_max


def test_a_read_starts_with_the_batch_that_covers_the_offset() -> None:
    log = a_log(batches=30)
    for offset in range(60):
        assert BatchView(log.read(offset, 1)).base_offset == offset // 2 * 2
        assert log.batch_base(offset) == offset // 2 * 2


def test_a_read_in_a_hole_starts_with_the_next_batch() -> None:
    log = a_log(batches=2)
    log.append(a_batch(50).data)
    for offset in range(4, 51):
        assert bases(log.read(offset, 1)) == [50]
        assert log.batch_base(offset) == 50


def test_a_read_returns_whole_batches_up_to_its_limit() -> None:
    log = a_log(batches=4)
    size = len(log.read(0, 1))
    assert bases(log.read(0, 2 * size)) == [0, 2]
    assert bases(log.read(0, 3 * size - 1)) == [0, 2]
    assert bases(log.read(3, 10_000)) == [2, 4, 6]


def test_a_read_never_returns_more_than_the_config_allows() -> None:
    size = a_batch(0).size
    config = LogConfig(read_bytes_max=2 * size)
    assert bases(a_log(batches=4, config=config).read(0, 1 << 30)) == [0, 2]


def test_a_read_outside_the_log_is_refused_with_its_bounds() -> None:
    log = a_log(batches=20)
    log.drop_before(20)
    for offset in (log.first_base - 1, 41, -1):
        with pytest.raises(OffsetOutOfRange) as refused:
            log.read(offset, 1)
        assert (refused.value.start, refused.value.end) == (log.first_base, 40)


def test_a_lookup_takes_one_read_when_the_index_is_loaded() -> None:
    disk = a_disk()
    log = a_log(disk, batches=200)
    log.read(100, 1)
    before = disk.reads
    log.read(101, 200)
    assert disk.reads == before + 1


def test_a_lookup_reads_at_most_one_index_interval_too_much() -> None:
    disk = a_disk()
    log = a_log(disk, config=LogConfig(index_interval_bytes=500), batches=2000)
    before = disk.bytes_read
    log.read(3001, 100)
    assert disk.bytes_read - before <= 600


def test_a_sequential_reader_reads_nothing_twice() -> None:
    disk = a_disk()
    log = a_log(disk, config=LogConfig(), batches=20)
    size = len(log.read(0, 1))
    log.read(0, 3 * size)
    reads, bytes_read = disk.reads, disk.bytes_read
    assert bases(log.read(6, 2 * size)) == [6, 8]
    assert (disk.reads, disk.bytes_read) == (reads + 1, bytes_read + 2 * size)


def test_a_sequential_reader_does_not_use_positions_that_were_cut() -> None:
    log = a_log(config=LogConfig(), batches=4)
    log.read(0, 1 << 20)
    log.truncate(4)
    for base in (4, 7, 10):
        log.append(a_batch(base, 3).data)
    for offset, wanted in ((4, [4, 7, 10]), (8, [7, 10]), (10, [10])):
        assert bases(log.read(offset, 1 << 20)) == wanted


def test_a_read_with_a_strict_limit_returns_nothing_rather_than_too_much() -> None:
    log = a_log(config=LogConfig(), batches=4)
    size = len(log.read(0, 1))
    assert bases(log.read(0, size, first_always=False)) == [0]
    assert bases(log.read(0, size - 1, first_always=False)) == []


def test_the_readable_bytes_are_never_underestimated() -> None:
    disk = a_disk()
    log = a_log(disk, config=LogConfig(index_interval_bytes=500), batches=50)
    size = log.size_bytes
    before = disk.reads
    estimates = [log.bytes_from(offset) for offset in range(0, 100, 2)]
    assert disk.reads == before
    for place, estimate in enumerate(estimates):
        exact = size - place * size // 50
        assert exact <= estimate <= exact + 500 + size // 50


# --- time ---------------------------------------------------------------------------------------


def test_a_time_is_found_at_the_first_batch_that_reaches_it() -> None:
    times = [5, 3, 9, 9, 1, 2, 2, 40, 0, 41, 40, 39, 60, -1, 7, 61, 61, 3, 99, 5] * 3
    log = a_log()
    for number, time in enumerate(times):
        log.append(a_batch(number, count=1, at_ms=time).data)
    assert len(list(log.each_info())) > 3
    for wanted in range(-2, 100):
        first = next((n for n, time in enumerate(times) if time >= wanted), None)
        found = log.find_time(wanted)
        assert (None if found is None else bases(found)) == (None if first is None else [first])
    assert log.find_time(100) is None


def test_a_single_late_timestamp_early_on_does_not_make_lookups_read_everything() -> None:
    disk = a_disk()
    log = a_log(disk, config=LogConfig(index_interval_bytes=500))
    log.append(a_batch(0, at_ms=START_MS).data)
    for _ in range(3000):
        log.append(a_batch(log.end_offset, at_ms=START_MS - 1000).data)
    log.append(a_batch(log.end_offset, at_ms=START_MS + 1000).data)
    last = log.end_offset - 2
    append(log, 3000)
    before = disk.reads
    found = log.find_time(START_MS + 10)
    assert found is not None and bases(found) == [last]
    assert disk.reads - before == 1


def test_the_newest_time_is_the_greatest_wherever_it_is() -> None:
    log = a_log()
    for base, time in enumerate([5, 7, 90, 3] + [8] * 30):
        log.append(a_batch(base, count=1, at_ms=time).data)
    found = log.newest_time()
    assert found is not None and bases(found) == [2]


def test_a_log_without_timestamps_still_has_a_newest_batch() -> None:
    log = a_log()
    log.append(a_batch(0, at_ms=-1).data)
    found = log.newest_time()
    assert found is not None and bases(found) == [0]


def test_times_are_correct_after_a_cut_and_new_batches() -> None:
    log = a_log()
    for base, time in enumerate(range(10, 40)):
        log.append(a_batch(base, count=1, at_ms=time).data)
    log.truncate(5)
    for base, time in enumerate(range(50, 80), start=5):
        log.append(a_batch(base, count=1, at_ms=time).data)
    for wanted, base in ((14, 4), (15, 5), (50, 5), (51, 6), (79, 34)):
        found = log.find_time(wanted)
        assert found is not None and bases(found) == [base]


def test_times_of_cut_batches_are_forgotten() -> None:
    config = replace(TINY, segment_bytes_max=1 << 20)
    log = a_log(config=config)
    for base in range(30):
        log.append(a_batch(base, count=1, at_ms=100 + base).data)
    log.truncate(5)
    for base in range(5, 30):
        log.append(a_batch(base, count=1, at_ms=50).data)
    assert next(iter(log.each_info())).max_timestamp_ms == 104
    assert log.find_time(105) is None
    newest = log.newest_time()
    assert newest is not None and bases(newest) == [4]


def test_the_last_batch_is_cached_in_memory_as_it_is_on_disk() -> None:
    log = a_log(batches=3)
    assert log.tail(4) == log.read(4, 1)
    assert len(log.tail(2)) == len(log.tail(5)) == len(log.tail(6)) == 0


def test_a_large_last_batch_is_not_cached() -> None:
    log = a_log(config=replace(TINY, segment_bytes_max=100_000))
    log.append(a_batch(0, fill=TAIL_BYTES_MAX).data)
    assert len(log.tail(0)) == 0


def test_cut_or_closed_batches_are_not_cached() -> None:
    log = a_log(batches=3)
    log.truncate(4)
    assert len(log.tail(4)) == 0
    append(log, 1)
    log.roll()
    assert len(log.tail(4)) == 0
    log.reset(0)
    assert len(log.tail(0)) == 0
