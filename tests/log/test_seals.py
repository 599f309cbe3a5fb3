"""The seals of closed segments: always true, and enough to detect changed data."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kafkaesque.ages import Ages
from kafkaesque.errors import NewerFormat
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.seals import Seal, Seals, is_like
from kafkaesque.log.segment_check import BadPlace, check_segment
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.record.view import stamp
from kafkaesque.sim.disk import CrashPolicy, SimDisk
from kafkaesque.types import Offset
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

SEALS = f"{FOLDER}/seals"
SIZE = a_batch(10).size


def stopped(log: Segments) -> SyncedPoint:
    log.close()
    return log.point()


def read_through(log: Segments, *, has_holes: bool = False, is_sealed: bool = True) -> list[Seal]:
    """The seals that the closed segments should have, computed by reading them."""
    found = []
    for segment in log.closed():
        steps = check_segment(
            segment.file,
            segment.size,
            base=segment.base,
            end=log.end_of(segment),
            term_at=lambda _: 1,
            has_holes=has_holes,
            seals=log.seals.of(segment.base) if is_sealed else (),
        )
        found.append(result(steps))
    assert all(isinstance(one, Seal) for one in found), found
    return [one for one in found if isinstance(one, Seal)]


def result(steps: object) -> Seal | BadPlace:
    try:
        while True:
            next(steps)  # type: ignore[call-overload]
    except StopIteration as end:
        found: Seal | BadPlace = end.value
        return found


def test_a_segment_is_sealed_when_it_is_closed() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    sync(log)
    saved = Seals.load(disk, FOLDER).all()
    assert saved == log.seals.all() == read_through(log, is_sealed=False)
    assert [(one.base, one.end) for one in saved] == [(0, 12), (12, 24), (24, 36), (36, 48)]


def test_batches_written_together_are_each_in_the_seal() -> None:
    log = a_log()
    views = [a_batch(base).data for base in range(0, 40, 2)]
    while views:
        del views[: log.append(*views)]
    assert log.seals.all() == read_through(log, is_sealed=False) != []


def test_the_checksum_continues_where_the_last_run_ended() -> None:
    disk = a_disk()
    log = a_log(disk, batches=8)
    point = sync(log)
    append(log, 1)  # after the synced point: recovery reads it
    log = recover(disk, point)
    append(log, 20)
    assert [one.base for one in log.seals.all()] == [0, 12, 24, 36]
    assert log.seals.all() == read_through(log, is_sealed=False)


def test_a_segment_with_an_unknown_checksum_is_not_sealed() -> None:
    disk = a_disk()
    point = stopped(a_log(disk, batches=8))
    log = recover(disk, SyncedPoint(segment_base=12, position=point.position, end_offset=16))
    append(log, 20)
    assert [one.base for one in log.seals.all()] == [0, 24, 36]


def test_a_truncated_segment_is_not_sealed_with_its_old_contents() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    sync(log)
    log.truncate(20)
    assert [one.base for one in Seals.load(disk, FOLDER).all()] == [0], "before anything else"
    append(log, 20)
    sync(log)
    assert [one.base for one in log.seals.all()] == [0, 24, 36]
    assert not recover(disk, stopped(log)).found


def test_seals_beyond_the_synced_point_are_gone_after_a_start() -> None:
    disk = a_disk()
    log = a_log(disk, batches=2)
    point = sync(log)
    append(log, 28)
    sync(log)
    sync(log)
    assert [one.base for one in Seals.load(disk, FOLDER).all()] == [0, 12, 24, 36]
    disk.open(path(12)).truncate(3 * a_batch(12).size)  # torn, as far as recovery can tell
    log = recover(disk, point)
    assert (log.end_offset, log.found) == (18, ())
    assert [one.base for one in log.seals.all()] == [0]
    assert Seals.load(disk, FOLDER).all() == [], "before the point can move on"


def test_a_log_that_starts_over_has_no_seals() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    sync(log)
    log.reset(0)
    assert "seals" not in disk.list(FOLDER)
    append(log, 30)
    assert not recover(disk, stopped(log)).found


def test_seals_are_removed_with_their_segments() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    log.drop_before(24)
    sync(log)
    assert [one.base for one in Seals.load(disk, FOLDER).all()] == [24, 36]


def test_a_full_disk_does_not_prevent_a_cut() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    sync(log)
    disk.faults = replace(disk.faults, full_at_bytes=disk.used_bytes)
    log.truncate(20)
    assert "seals" not in disk.list(FOLDER), "no seal rather than a wrong one"
    assert log.end_offset == 20


def test_a_damaged_file_of_seals_has_none_and_is_reported() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    point = stopped(log)
    for position in range(disk.open(SEALS).size()):
        if position in (4, 5):
            continue  # the format has a separate test
        disk.flip_bit(SEALS, position, 1)
        seals = Seals.load(disk, FOLDER)
        assert seals.all() == [] and seals.lost is not None
        disk.flip_bit(SEALS, position, 1)
    disk.flip_bit(SEALS, 20, 1)
    log = recover(disk, point)
    assert (log.found, log.seals.lost) == ((), f"{SEALS} is damaged")


def test_seals_of_a_later_version_are_left_alone() -> None:
    disk = a_disk()
    stopped(a_log(disk, batches=30))
    overwrite(disk, SEALS, 4, b"\0\2")
    with pytest.raises(NewerFormat):
        Seals.load(disk, FOLDER)


# ── compaction ───────────────────────────────────────────────────────────────────────────────


def compacted(disk: SimDisk) -> Segments:
    """A log with holes, in every segment but the last ones."""
    log = Segments.create(disk, FOLDER, TINY, HandClock(), 0)
    for number in range(30):
        log.append(a_batch(log.end_offset, at_ms=START_MS, fill=20 + number % 3).data)
        if number % 4 == 0:
            log.append(rewritten(log.end_offset))
    point = sync(log)
    rules = CompactionRules(delete_retention_ms=0)
    for _ in compact(log, below=point.segment_base, ages=Ages(now_ms=START_MS), rules=rules):
        pass
    sync(log)
    return log


def rewritten(base: Offset, like: Offset = 0) -> bytearray:
    """A batch of the same two keys each time, so that all but the last are superseded."""
    batch = bytearray(a_batch(like).data)
    stamp(batch, base, 1)
    return batch


def test_a_compacted_segment_is_sealed() -> None:
    disk = a_disk()
    log = compacted(disk)
    assert len(log.closed()) > 4
    assert Seals.load(disk, FOLDER).all() == read_through(log, has_holes=True, is_sealed=False)
    assert not recover(disk, stopped(log)).found


def test_compaction_does_not_seal_a_damaged_offset() -> None:
    disk = a_disk()
    log = compacted(disk)
    victim = log.closed()[1]
    victim_key = list(victim.batches())[-1].base_offset
    disk.flip_bit(victim.path, 7, 1)  # the base offset of its first batch
    for _ in range(
        30
    ):  # the victim's last key is written again, so that the victim will be rewritten
        log.append(rewritten(log.end_offset, victim_key))
    below = sync(log).segment_base
    rules = CompactionRules(delete_retention_ms=0)
    with pytest.raises(CorruptLog, match="seal") as damage:
        for _ in compact(log, below=below, ages=Ages(now_ms=START_MS), rules=rules):
            pass
    assert damage.value.offset == victim.base


# ── what a start finds ───────────────────────────────────────────────────────────────────────

Harm = Callable[[SimDisk, Seal, bytes], None]


def _delete(disk: SimDisk, seal: Seal, _: bytes) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        if f"{seal.base:020d}{suffix}" in disk.list(FOLDER):
            disk.remove(path(seal.base, suffix))


def _truncate(disk: SimDisk, seal: Seal, _: bytes) -> None:
    disk.open(path(seal.base)).truncate(seal.bytes - 1)


def _cut_last(disk: SimDisk, seal: Seal, _: bytes) -> None:
    disk.open(path(seal.base)).truncate(seal.last_position)


def _grow(disk: SimDisk, seal: Seal, _: bytes) -> None:
    overwrite(disk, path(seal.base), seal.bytes, b"more")


def _empty(disk: SimDisk, seal: Seal, _: bytes) -> None:
    disk.open(path(seal.base)).truncate(0)


def _foreign_content(disk: SimDisk, seal: Seal, _: bytes) -> None:
    file = disk.open(path(seal.base))
    file.truncate(0)
    file.write(0, b"#!/bin/sh\n" * 20)


def _swap(disk: SimDisk, seal: Seal, neighbour: bytes) -> None:
    file = disk.open(path(seal.base))
    file.truncate(0)
    file.write(0, neighbour)


def _first_offset(disk: SimDisk, seal: Seal, _: bytes) -> None:
    disk.flip_bit(path(seal.base), 7, 1)


def _last_term(disk: SimDisk, seal: Seal, _: bytes) -> None:
    disk.flip_bit(path(seal.base), seal.last_position + 15, 1)


HARMS = {
    harm.__name__.strip("_").replace("_", " "): harm
    for harm in (
        _delete,
        _truncate,
        _cut_last,
        _grow,
        _empty,
        _foreign_content,
        _swap,
        _first_offset,
        _last_term,
    )
}


@pytest.mark.parametrize("has_holes", [False, True], ids=["plain", "compacted"])
@pytest.mark.parametrize("what", HARMS)
@pytest.mark.parametrize("place", [0, 1])
def test_a_start_finds_the_segment_that_differs_from_its_seal(
    what: str, place: int, *, has_holes: bool
) -> None:
    disk = a_disk()
    log = compacted(disk) if has_holes else a_log(disk, batches=30)
    whole = contents(log)
    seal, other = log.seals.all()[place], log.seals.all()[place + 1]
    point = stopped(log)
    file = disk.open(path(other.base))
    HARMS[what](disk, seal, file.read(0, file.size()))
    before = disk.bytes_read
    log = Segments.recover(
        disk,
        FOLDER,
        TINY,
        HandClock(),
        start_offset=0,
        synced=point,
        term_at=lambda _: 1,
        has_holes=has_holes,
    )
    assert disk.bytes_read - before < log.size_bytes + 2 * TINY.segment_bytes_max
    (damage,) = log.found
    assert damage.path == path(seal.base)
    assert damage.offset is not None and seal.base <= damage.offset < seal.end
    assert (log.first_base, log.end_offset) == (0, point.end_offset), "it keeps its end"
    behind = [data for data in whole if bases(data)[0] >= seal.end]
    assert read_from(log, seal.end) == behind, "what follows can be read"
    good = read_until_damage(log, seal)
    assert good == whole[: len(good)]
    if has_holes:
        assert all(bases(data)[0] < seal.base for data in good), "none of its data is used"
    with pytest.raises(CorruptLog):
        if what != "grow" or has_holes:
            log.read(seal.end - 1, 1)
        else:
            log.newest_time()


def read_from(log: Segments, offset: Offset) -> list[bytes]:
    found = []
    while offset < log.end_offset:
        data = bytes(log.read(offset, 1))
        found.append(data)
        offset = max(bases(data)[0], offset) + 2
    return found


def read_until_damage(log: Segments, seal: Seal) -> list[bytes]:
    found: list[bytes] = []
    offset = log.first_base
    while offset < seal.end:
        try:
            data = bytes(log.read(offset, 1))
        except CorruptLog:
            return found
        found.append(data)
        offset = bases(data)[0] + 2
    return found


def test_a_file_within_another_segments_range_is_set_aside() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    whole = contents(log)
    point = stopped(log)
    file = disk.create(path(14))
    file.write(0, b"an old copy, perhaps")
    log = recover(disk, point)
    (damage,) = log.found
    assert (damage.path, damage.offset) == (path(14), 14)
    assert contents(log) == whole
    assert f"{14:020d}.log.foreign.0" in disk.list(FOLDER)
    assert not recover(disk, stopped(log)).found


def test_a_start_reads_little_of_sound_segments() -> None:
    disk = a_disk()
    config = replace(TINY, segment_bytes_max=100_000, index_interval_bytes=50_000)
    log = a_log(disk, batches=3000, config=config)
    point = stopped(log)
    assert len(log.closed()) >= 4
    before = disk.bytes_read
    recover(disk, point, config=config)
    assert disk.bytes_read - before < log.size_bytes / 4


def test_compaction_skips_everything_behind_a_damaged_segment() -> None:
    disk = a_disk()
    log = compacted(disk)
    seals = log.seals.all()
    point = stopped(log)
    _delete(disk, seals[1], b"")
    log = recover(disk, point)
    assert [segment.base for segment in log.compactable(log.end_offset)] == [seals[0].base]


# ── reading through ──────────────────────────────────────────────────────────────────────────


def test_only_the_seal_reveals_an_offset_that_moved_into_a_hole() -> None:
    disk = a_disk()
    log = a_log(disk)
    for base in (0, 10, 30, 40):
        log.append(a_batch(base).data)
    log.roll()
    (segment,) = log.closed()
    moved = bytearray(a_batch(10).data)
    stamp(moved, 20, 1)
    size = a_batch(0).size
    overwrite(disk, path(0), size, bytes(moved))
    (seal,) = log.seals.all()
    assert is_like(segment.file, segment.size, seal), "a quick look does not see it"
    (found,) = [
        result(
            check_segment(
                segment.file,
                segment.size,
                base=0,
                end=42,
                term_at=lambda _: 1,
                has_holes=True,
                seals=(seal,),
            )
        )
    ]
    assert isinstance(found, BadPlace)
    assert (found.offset, "seal" in found.reason) == (0, True)


def test_a_stop_while_seals_are_being_synced_leaves_no_torn_file() -> None:
    disk = a_disk()
    log = a_log(disk, batches=30)
    log.take_dirty()  # a round begins, and the disk has not answered
    log.close()
    disk.crash(CrashPolicy.DROP_UNSYNCED)
    assert Seals.load(disk, FOLDER).lost is None
