"""The same segments on the machine's own disk: one run from creation to a third start."""

from pathlib import Path

import pytest

from kafkaesque.ages import Ages
from kafkaesque.clock import SystemClock
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from tests.log.logs import FOLDER, START_MS, TINY, a_batch, append, bases, contents, whole


def opened(disk: PosixDisk, synced: SyncedPoint | None, start: int = 0) -> Segments:
    return Segments.recover(
        disk,
        FOLDER,
        TINY,
        SystemClock(),
        start_offset=start,
        synced=synced,
        term_at=lambda _: 1,
    )


@pytest.mark.requirement("LOG-1")
def test_a_log_survives_rolls_cuts_trims_compaction_and_restarts(tmp_path: Path) -> None:
    disk = PosixDisk(tmp_path, open_files_max=4)
    log = Segments.create(disk, FOLDER, TINY, SystemClock(), 0)
    append(log, 60)
    disk.sync_now(*log.take_dirty())
    log.truncate(80)
    append(log, 20)
    expected = whole([a_batch(base) for base in range(0, 120, 2)])
    assert contents(log) == expected
    log.close()

    log = opened(disk, log.point())
    assert contents(log) == expected
    found = log.find_time(START_MS + 51)
    assert found is not None and bases(found) == [52]
    for _ in compact(
        log, below=log.end_offset, ages=Ages(now_ms=START_MS), rules=CompactionRules()
    ):
        pass
    assert contents(log) == expected, "every key occurs once"
    second = list(log.each_info())[1].base
    log.drop_before(second)
    append(log, 1)
    disk.sync_now(*log.take_dirty())
    point = log.point()
    disk.close()

    disk = PosixDisk(tmp_path)
    log = opened(disk, point, second)
    assert (log.first_base, log.end_offset) == (second, 122)
    assert contents(log) == whole([a_batch(base) for base in range(second, 122, 2)])
    disk.close()


def test_compaction_replaces_files_while_they_are_read(tmp_path: Path) -> None:
    disk = PosixDisk(tmp_path)
    log = Segments.create(disk, FOLDER, TINY, SystemClock(), 0)
    for _ in range(30):
        record = Record(offset=log.end_offset, timestamp_ms=START_MS, key=b"k", value=bytes(60))
        log.append(build_batch([record], base_offset=log.end_offset, term=1))
    before = log.size_bytes
    rules = CompactionRules()
    for _ in compact(log, below=log.end_offset, ages=Ages(now_ms=START_MS), rules=rules):
        contents(log)
    assert log.size_bytes < before
    kept = contents(log)
    log.close()
    log = opened(disk, log.point())
    assert contents(log) == kept
    disk.close()
