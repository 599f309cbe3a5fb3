"""Opening segments after a stop or a crash: what is cut, what is kept, what is refused."""

from dataclasses import replace

import pytest

from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.segments import SegmentInfo, Segments, SyncedPoint
from kafkaesque.record.view import HEADER_BYTES, stamp
from kafkaesque.sim.disk import CrashPolicy, SimDisk
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
    overwrite,
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


@pytest.mark.requirement("LOG-4")
def test_a_clean_stop_loses_nothing() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    expected = contents(log)
    point = stopped(log)
    disk.crash()
    log = recover(disk, point)
    assert (contents(log), log.end_offset, log.point()) == (expected, 60, point)


def test_after_a_clean_stop_only_the_end_of_the_log_is_read() -> None:
    disk = a_disk()
    config = replace(TINY, segment_bytes_max=1 << 20)
    log = a_log(disk, batches=3000, config=config)
    point = stopped(log)
    before = disk.bytes_read
    recover(disk, point, config=config)
    index_bytes = disk.open(path(0, ".index")).size() + disk.open(path(0, ".timeindex")).size()
    assert disk.bytes_read - before - index_bytes < 1000


@pytest.mark.requirement("LOG-4")
def test_synced_batches_survive_and_the_tail_too_if_it_is_whole() -> None:
    disk = a_disk()
    log = a_log(disk, batches=10)
    point = sync(log)
    append(log, 10)
    expected = contents(log)
    disk.crash(KEEP)
    assert contents(recover(disk, point)) == expected


def test_unsynced_batches_may_be_gone() -> None:
    disk = a_disk()
    log = a_log(disk, batches=10)
    expected = contents(log)
    point = sync(log)
    append(log, 10)
    disk.crash(DROP)
    log = recover(disk, point)
    assert contents(log) == expected
    append(log, 1)
    assert log.end_offset == 22


def test_recovered_batches_are_durable() -> None:
    disk = a_disk()
    log = a_log(disk, batches=3)
    point = sync(log)
    append(log, 20)
    log = recover(disk, point)  # the process died, the machine did not
    expected = contents(log)
    assert len(expected) == 23
    disk.crash(DROP)
    assert contents(recover(disk, log.point())) == expected


def test_a_log_never_synced_is_scanned_from_its_start() -> None:
    disk = a_disk()
    log = a_log(disk, batches=20, start=100)
    expected = contents(log)
    disk.crash(KEEP)
    assert contents(recover(disk, None, start=100)) == expected


def test_a_log_whose_files_were_never_synced_starts_over() -> None:
    disk = a_disk()
    a_log(disk, batches=20, start=100)
    disk.crash(DROP)
    log = recover(disk, None, start=100)
    assert (log.first_base, log.end_offset) == (100, 100)
    append(log, 1)


@pytest.mark.requirement("LOG-4")
def test_the_last_batch_cut_at_any_byte_is_dropped_and_the_rest_stays() -> None:
    for length in range(a_batch(0).size):
        disk = a_disk()
        log = a_log(disk, batches=3)
        point = sync(log)
        expected = contents(log)
        append(log, 1)
        file = disk.open(path(0))
        file.truncate(log.size_bytes - a_batch(0).size + length)
        log = recover(disk, point)
        assert contents(log) == expected
        assert file.size() == log.size_bytes, "the torn tail is gone from the file"
        append(log, 1)
        assert contents(recover(disk, point)) == [*expected, bytes(a_batch(6).data)]


def test_any_flipped_bit_in_the_tail_cuts_it_there() -> None:
    size = a_batch(0).size
    for position in range(size):
        if 12 <= position < 16:
            continue  # another test checks the term
        disk = a_disk()
        log = a_log(disk, batches=2)
        point = sync(log)
        expected = contents(log)
        append(log, 2)
        disk.flip_bit(path(0), 2 * size + position, 7)
        found = contents(recover(disk, point))
        # The checksum does not cover the base offset: a larger one looks like a hole.
        assert found == expected or position < 8


def test_a_batch_of_another_term_ends_the_tail() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    log.append(a_batch(4, term=2).data)
    log.append(a_batch(6, term=1).data)
    log.append(a_batch(8, term=2).data)
    log = Segments.recover(
        disk,
        FOLDER,
        TINY,
        HandClock(),
        start_offset=0,
        synced=point,
        term_at=lambda offset: 1 if offset < 4 else 2,
    )
    assert log.end_offset == 6


def test_a_decreasing_offset_ends_the_tail() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    append(log, 2)
    batch = bytearray(a_batch(6).data)
    stamp(batch, 5, 1)
    overwrite(disk, path(0), 3 * len(batch), bytes(batch))
    assert recover(disk, point).end_offset == 6


def test_a_hole_within_a_file_of_the_tail_is_kept() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    log.append(a_batch(50).data)
    log.append(a_batch(60).data)
    log = recover(disk, point)
    assert (log.end_offset, log.batch_base(10), log.batch_base(55)) == (62, 50, 60)


def test_a_hole_between_files_of_the_tail_is_a_lost_end() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    append(log, 28)
    infos = list(log.each_info())
    file = disk.open(path(0))
    file.truncate(file.size() - a_batch(0).size)
    log = recover(disk, point)
    assert log.end_offset == infos[0].end - 2
    assert len(list(log.each_info())) == 1
    assert not any(name.startswith(f"{infos[1].base:020d}") for name in names(disk))


def test_a_tail_over_several_segments_is_kept() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    append(log, 40)
    expected = contents(log)
    times = [log.find_time(info.max_timestamp_ms) for info in list(log.each_info())]
    log = recover(disk, point)
    assert contents(log) == expected
    assert [log.find_time(info.max_timestamp_ms) for info in list(log.each_info())] == times


def test_old_index_entries_beyond_the_end_are_ignored() -> None:
    disk = a_disk()
    config = replace(TINY, segment_bytes_max=1 << 20)
    log = a_log(disk, batches=6, config=config)
    point = sync(log)
    append(log, 2)
    log.close()
    disk.open(path(0)).truncate(point.position)
    log = recover(disk, point, config=config)
    for base in (12, 13, 14, 15):
        log.append(a_batch(base, count=1, fill=0).data)
    assert [log.batch_base(offset) for offset in range(10, 16)] == [10, 10, 12, 13, 14, 15]


def test_times_of_a_lost_tail_stay_forgotten() -> None:
    disk = a_disk()
    config = replace(TINY, segment_bytes_max=1 << 20, index_sync_bytes=1 << 20)
    log = a_log(disk, config=config)
    write_times(log, 10, at_ms=100)
    point = sync(log)
    write_times(log, 20, at_ms=1000)
    log.close()
    disk.open(path(0)).truncate(point.position)
    log = recover(disk, point, config=config)
    assert (newest(log), log.find_time(START_MS + 1000)) == (109, None)
    write_times(log, 30, at_ms=200)
    point = sync(log)
    disk.crash(DROP)
    log = recover(disk, point, config=config)
    assert (newest(log), log.find_time(START_MS + 1000)) == (229, None)
    for wanted in range(200, 230):
        found = log.find_time(START_MS + wanted)
        assert found is not None and bases(found) == [wanted - 200 + 10]


def test_a_time_index_that_lost_more_than_the_offset_index_is_completed() -> None:
    config = replace(TINY, segment_bytes_max=1 << 20)
    for entries in range(8):
        disk = a_disk()
        log = a_log(disk, config=config)
        write_times(log, 40, at_ms=100)
        point = stopped(log)
        disk.open(path(0, ".timeindex")).truncate(12 * entries)
        log = recover(disk, point, config=config)
        for wanted in range(100, 140):
            found = log.find_time(START_MS + wanted)
            assert found is not None and bases(found) == [wanted - 100]


def write_times(log: Segments, count: int, *, at_ms: int) -> None:
    """Append batches of one record, a millisecond apart."""
    for number in range(count):
        log.append(a_batch(log.end_offset, count=1, at_ms=START_MS + at_ms + number).data)


def newest(log: Segments) -> int:
    assert len(list(log.each_info())) == 1
    return next(iter(log.each_info())).max_timestamp_ms - START_MS


def test_nothing_after_a_bad_batch_is_kept_even_if_it_would_fit() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    append(log, 28)
    second = list(log.each_info())[1].base
    file = disk.open(path(0))
    file.write(file.size(), b"something else")
    log = recover(disk, point)
    assert log.end_offset == second
    assert len(list(log.each_info())) == 1


# --- damage before the synced point -------------------------------------------------------------


def refused(disk: SimDisk, point: SyncedPoint, *, start: int = 0) -> CorruptLog:
    before = {name: disk.open(f"{FOLDER}/{name}").size() for name in names(disk)}
    with pytest.raises(CorruptLog) as damage:
        recover(disk, point, start=start)
    assert {name: disk.open(f"{FOLDER}/{name}").size() for name in names(disk)} == before
    return damage.value


def test_a_file_shorter_than_the_synced_point_is_damage() -> None:
    disk = a_disk()
    point = stopped(a_log(disk, batches=4))
    disk.open(path(0)).truncate(point.position - 1)
    assert refused(disk, point).position == point.position - 1


def test_a_missing_synced_segment_is_damage() -> None:
    disk = a_disk()
    point = stopped(a_log(disk, batches=30))
    disk.remove(path(point.segment_base))
    assert refused(disk, point).path == path(point.segment_base)


@pytest.mark.parametrize("has_seals", [True, False])
def test_a_missing_earlier_segment_is_lost_and_the_rest_of_the_log_is_not(
    *, has_seals: bool
) -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    second = list(log.each_info())[1]
    point = stopped(log)
    disk.remove(path(second.base))
    if not has_seals:  # then its index shows the loss
        disk.remove(f"{FOLDER}/seals")
    check_lost(recover(disk, point), second)


@pytest.mark.parametrize("has_seals", [True, False])
def test_a_missing_first_segment_is_lost_and_the_rest_of_the_log_is_not(*, has_seals: bool) -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    first = next(log.each_info())
    point = stopped(log)
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(path(0, suffix))
    if not has_seals:
        disk.remove(f"{FOLDER}/seals")
    check_lost(recover(disk, point), first)


def check_lost(log: Segments, lost: SegmentInfo) -> None:
    """Check that one segment is gone, but not the others nor the log's end; also the next time."""
    (damage,) = log.found
    assert (damage.path, damage.offset) == (path(lost.base), lost.base)
    assert (log.first_base, log.end_offset) == (0, 60)
    with pytest.raises(CorruptLog):
        log.read(lost.base, 1)
    assert bases(log.read(lost.end, 1)) == [lost.end]
    point = stopped(log)
    assert isinstance(log.disk, SimDisk)
    again = recover(log.disk, point)
    assert [one.offset for one in again.found] == [lost.base]


def test_an_empty_folder_with_a_synced_point_is_damage() -> None:
    disk = a_disk()
    disk.make_folder(FOLDER)
    refused(disk, SyncedPoint(segment_base=0, position=10, end_offset=2))


def test_a_foreign_batch_before_the_synced_point_is_damage() -> None:
    disk = a_disk()
    log = a_log(disk, batches=4)
    point = stopped(log)
    last = point.position - a_batch(0).size
    overwrite(disk, path(0), last, b"\0" * HEADER_BYTES)
    assert refused(disk, point).position == last
