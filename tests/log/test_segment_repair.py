"""A damaged segment is rewritten from a peer's batches: checked, then swapped atomically."""

from collections.abc import Callable, Iterator

import pytest

from kafkaesque.log.damage import ASIDE_MAX
from kafkaesque.log.errors import RepairFailed
from kafkaesque.log.seals import NAME as SEALS
from kafkaesque.log.segment_repair import Gap, Mending, find_gap
from kafkaesque.log.segments import Segments, SyncedPoint
from kafkaesque.log.steps import Step
from kafkaesque.sim.disk import PowerLost, SimDisk
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.types import Offset, Term
from tests.log.logs import (
    FOLDER,
    a_batch,
    a_disk,
    a_log,
    append,
    contents,
    overwrite,
    path,
    recover,
    sync,
)

BATCHES = 40
GOOD = contents(a_log(batches=BATCHES))


def term_at(_: Offset) -> Term:
    return 1


def a_damaged_log(disk: SimDisk) -> tuple[Segments, SyncedPoint, Offset]:
    """A log of several segments, of which the second is damaged."""
    log = a_log(disk, batches=BATCHES)
    point = sync(log)
    base = [info.base for info in log.each_info()][1]
    overwrite(disk, path(base), 150, b"!!!")
    return log, point, base


def run_all(steps: Iterator[Step]) -> int:
    return sum(1 for _ in steps)


def gap_at(log: Segments, offset: Offset) -> Gap:
    steps = find_gap(log, offset, log.first_base)
    while True:
        try:
            next(steps)
        except StopIteration as found:
            assert isinstance(found.value, Gap)
            return found.value


def pieces(gap: Gap) -> Iterator[tuple[memoryview, Offset]]:
    """What a peer with a whole copy sends, one batch at a time."""
    for data in GOOD:
        base = int.from_bytes(data[:8], "big")
        if gap.first <= base < gap.end:
            yield memoryview(data), base + 2


def mend(log: Segments, gap: Gap) -> Iterator[Step]:
    mending = Mending(log, gap, has_holes=False)
    try:
        mending.begin()
        for data, end in pieces(gap):
            mending.add(data, end, term_at)
            yield Step.WORKED
        assert mending.is_complete
        yield from mending.finish()
    finally:
        mending.close()


def names(disk: SimDisk, ending: str) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.endswith(ending)]


def test_a_repaired_log_reads_as_before_and_the_damaged_file_is_kept() -> None:
    disk = a_disk()
    log, point, base = a_damaged_log(disk)
    file = disk.open(path(base))
    damaged = file.read(0, file.size())
    gap = gap_at(log, base)
    assert (gap.base, gap.first) == (base, base)
    run_all(mend(log, gap))
    assert contents(log) == GOOD
    (aside,) = names(disk, ".damaged")
    file = disk.open(f"{FOLDER}/{aside}")
    assert file.read(0, file.size()) == damaged
    assert contents(recover(disk, point)) == GOOD
    log.close()


def test_the_number_of_kept_damaged_files_is_limited() -> None:
    disk = a_disk()
    log, _, base = a_damaged_log(disk)
    for _ in range(ASIDE_MAX + 2):
        overwrite(disk, path(base), 150, b"!!!")
        run_all(mend(log, gap_at(log, base)))
    assert len(names(disk, ".damaged")) == ASIDE_MAX
    assert contents(log) == GOOD


def test_a_crash_at_any_step_leaves_the_old_segment_or_the_new_one() -> None:
    states = set()
    for policy in CrashPolicy:
        operation = 0
        while True:
            operation += 1
            disk = a_disk()
            log, point, base = a_damaged_log(disk)
            gap = gap_at(log, base)
            disk.crash_after = disk.operations + operation
            try:
                run_all(mend(log, gap))
            except PowerLost:
                disk.crash(policy)
            else:
                break
            again = recover(disk, point)
            assert [info.base for info in again.each_info()].count(base) == 1
            assert not names(disk, ".mended") and not names(disk, ".repair")
            file = disk.open(path(base))
            is_new = file.read(150, 3) != b"!!!"
            states.add(is_new)
            if is_new:
                assert contents(again) == GOOD
                assert len(names(disk, ".damaged")) <= 1
            run_all(mend(again, gap_at(again, base)))
            assert contents(again) == GOOD
    assert states == {False, True}


def drop_some(log: Segments) -> None:
    log.drop_before(list(log.each_info())[2].base)


def start_over(log: Segments) -> None:
    log.reset(900)


@pytest.mark.parametrize("other_work", [drop_some, start_over])
def test_segments_dropped_during_a_repair_are_not_restored(
    other_work: Callable[[Segments], None],
) -> None:
    log, _, base = a_damaged_log(a_disk())
    total = run_all(mend(log, gap_at(log, base)))
    for number in range(total):
        disk = a_disk()
        log, _, base = a_damaged_log(disk)
        try:
            for step, _ in enumerate(mend(log, gap_at(log, base))):
                if step == number:
                    other_work(log)
        except RepairFailed:
            pass
        kept = [info.base for info in log.each_info()]
        sync(log)
        again = recover(disk, log.point(), start=log.first_base)
        assert [info.base for info in again.each_info()] == kept
        assert not names(disk, ".mended") and not names(disk, ".repair")


def lose_segment(disk: SimDisk, log: Segments) -> Offset:
    """Remove the third segment; return its base."""
    base = [info.base for info in log.each_info()][2]
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(path(base, suffix))
    return base


def lose_seals(disk: SimDisk) -> None:
    """Make the log one of an earlier version, which sealed nothing."""
    disk.remove(f"{FOLDER}/{SEALS}")


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_missing_segment_is_restored(is_sealed: bool) -> None:
    disk = a_disk()
    log = a_log(disk, batches=BATCHES)
    point = sync(log)
    base = lose_segment(disk, log)
    if not is_sealed:
        lose_seals(disk)
    log = recover(disk, point)
    gap = gap_at(log, base)
    assert gap.base == base
    assert (gap.segment is not None) == is_sealed, "a sealed segment is known to have existed"
    run_all(mend(log, gap))
    assert contents(log) == GOOD
    assert log.find_time(0) is not None
    append(log, 3)
    sync(log)
    assert contents(recover(disk, log.point())) == contents(log)


def test_a_crash_during_the_restoration_of_a_segment_leaves_it_missing_or_complete() -> None:
    states = set()
    for operation in range(1, 40):
        disk = a_disk()
        log = a_log(disk, batches=BATCHES)
        point = sync(log)
        base = lose_segment(disk, log)
        lose_seals(disk)
        disk.sync_now([], [FOLDER])
        log = recover(disk, point)
        gap = gap_at(log, base)
        disk.crash_after = disk.operations + operation
        try:
            run_all(mend(log, gap))
        except PowerLost:
            disk.crash(CrashPolicy.TORN)
        else:
            break
        again = recover(disk, point)
        is_made = base in [info.base for info in again.each_info()]
        states.add(is_made)
        if is_made:
            assert contents(again) == GOOD
    assert states == {False, True}


def bad_pieces() -> dict[str, tuple[bytes, Offset]]:
    good = bytes(a_batch(10).data)
    flipped = bytearray(good)
    flipped[70] ^= 1
    return {
        "a bit is wrong": (bytes(flipped), 12),
        "the term is another": (bytes(a_batch(10, term=2).data), 12),
        "it begins later": (bytes(a_batch(12).data), 14),
        "it begins earlier": (bytes(a_batch(8, 3).data), 11),
        "it goes too far": (bytes(a_batch(10, 90).data), 100),
        "it ends elsewhere": (good, 14),
        "it is cut short": (good[:-1], 12),
        "there is nothing": (b"", 12),
    }


@pytest.mark.parametrize("what", bad_pieces())
def test_a_piece_that_does_not_fit_is_refused(what: str) -> None:
    log, _, _ = a_damaged_log(a_disk())
    gap = Gap(base=10, first=10, end=20, segment=None)
    mending = Mending(log, gap, has_holes=False)
    mending.begin()
    data, end = bad_pieces()[what]
    with pytest.raises(RepairFailed):
        mending.add(memoryview(data), end, term_at)
    assert not mending.is_complete
    mending.close()
    assert not names(log.disk, ".repair")  # type: ignore[arg-type]
