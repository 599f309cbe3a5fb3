"""Compaction by key: what is removed, what is kept, and that it can be interrupted anywhere."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kafkaesque.ages import Ages
from kafkaesque.errors import DiskFull
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.errors import CorruptLog, DiskFailed
from kafkaesque.log.segments import Segments
from kafkaesque.record.build import BatchTraits, build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView, Codec
from kafkaesque.sim.disk import DiskFaults, SimDisk
from kafkaesque.types import Offset
from tests.log.logs import (
    FOLDER,
    START_MS,
    TINY,
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

RULES = CompactionRules(delete_retention_ms=1000)
Pair = tuple[str | None, str | None]


def write(
    log: Segments,
    *pairs: Pair,
    codec: Codec = Codec.NONE,
    traits: BatchTraits | None = None,
    at_ms: int = START_MS,
) -> None:
    """Append one batch of these keys and values."""
    records = [
        Record(
            offset=log.end_offset + number,
            timestamp_ms=at_ms,
            key=None if key is None else key.encode(),
            value=None if value is None else value.encode(),
        )
        for number, (key, value) in enumerate(pairs)
    ]
    batch = build_batch(
        records, base_offset=log.end_offset, term=1, codec=codec, traits=traits or BatchTraits()
    )
    log.append(batch)


def roll(log: Segments) -> Offset:
    """Fill the active segment with records without keys until a new one begins."""
    count = len(list(log.each_info()))
    while len(list(log.each_info())) == count:
        write(log, (None, "x" * 300))
    return list(log.each_info())[-1].base


def run(log: Segments, *, below: Offset | None = None, now_ms: int = START_MS) -> int:
    bound = log.end_offset if below is None else below
    return sum(1 for _ in compact(log, below=bound, ages=Ages(now_ms=now_ms), rules=RULES))


def pairs(log: Segments) -> list[tuple[Offset, Pair]]:
    """The keyed records of the log."""
    return [
        (record.offset, (text(record.key), text(record.value)))
        for data in contents(log)
        for record in read_records(BatchView(data))
        if record.key is not None
    ]


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def latest(log: Segments) -> dict[str | None, str | None]:
    return {key: value for _, (key, value) in pairs(log) if value is not None}


def test_the_last_record_of_each_key_stays_where_it_was() -> None:
    log = a_log()
    write(log, ("a", "1"), ("b", "1"), ("a", "2"))
    write(log, ("c", "1"), ("b", "2"))
    roll(log)
    run(log)
    assert pairs(log) == [(2, ("a", "2")), (3, ("c", "1")), (4, ("b", "2"))]
    assert log.end_offset > 5


def test_a_later_segment_supersedes_an_earlier_one() -> None:
    log = a_log()
    write(log, ("a", "1"), ("b", "1"))
    roll(log)
    write(log, ("a", "2"))
    roll(log)
    run(log)
    assert [pair for _, pair in pairs(log)] == [("b", "1"), ("a", "2")]


def test_the_active_segment_and_uncommitted_records_stay() -> None:
    log = a_log()
    write(log, ("a", "1"))
    first_end = roll(log)
    write(log, ("a", "2"))
    roll(log)
    write(log, ("a", "3"), ("a", "4"))
    before = contents(log)
    run(log, below=first_end)
    assert contents(log) == before
    run(log)
    assert [pair for _, pair in pairs(log)] == [("a", "2"), ("a", "3"), ("a", "4")]


def test_the_newest_batch_stays_even_when_the_active_segment_is_empty() -> None:
    log = a_log()
    write(log, ("a", "1"))
    roll(log)
    write(log, ("a", None))
    end = log.end_offset
    log.append(a_batch(end, fill=900).data)
    log.truncate(end)
    assert [info.bytes > 0 for info in list(log.each_info())] == [True, True, False]
    for _ in range(3):
        run(log, now_ms=START_MS + 10_000)
    assert pairs(log)[-1][1] == ("a", None)


@pytest.mark.parametrize("codec", Codec)
def test_compressed_batches_are_compacted_too(codec: Codec) -> None:
    log = a_log()
    write(log, ("a", "1"), ("b", "1"), ("a", "2"), codec=codec)
    roll(log)
    run(log)
    assert pairs(log) == [(1, ("b", "1")), (2, ("a", "2"))]
    view = BatchView(log.read(0, 1))
    view.check_crc()
    assert (view.base_offset, view.last_offset, view.codec, view.term) == (0, 2, codec, 1)


def test_records_without_a_key_and_control_batches_stay_as_they_are() -> None:
    log = a_log()
    write(log, (None, "1"), (None, "2"))
    marker = BatchTraits(is_transactional=True, is_control=True)
    write(log, ("control", "1"), traits=marker)
    write(log, ("control", "1"), traits=marker)
    roll(log)
    before = contents(log)
    run(log)
    assert contents(log) == before


def test_a_transactional_record_supersedes_nothing() -> None:
    log = a_log()
    write(log, ("a", "1"))
    write(log, ("a", "aborted?"), traits=BatchTraits(is_transactional=True))
    roll(log)
    run(log)
    assert [pair for _, pair in pairs(log)] == [("a", "1"), ("a", "aborted?")]


def test_a_tombstone_is_removed_in_a_later_pass_and_not_before_its_time() -> None:
    log = a_log()
    write(log, ("a", "1"))
    roll(log)
    write(log, ("a", None))
    roll(log)
    late = START_MS + RULES.delete_retention_ms
    run(log, now_ms=late)
    assert [pair for _, pair in pairs(log)] == [("a", None)]
    run(log, now_ms=late - 1)
    assert [pair for _, pair in pairs(log)] == [("a", None)]
    run(log, now_ms=late)
    assert pairs(log) == []


def test_a_tombstone_from_the_future_is_judged_by_when_it_was_written() -> None:
    log = a_log()
    write(log, ("a", None), at_ms=2**62)
    roll(log)
    run(log)
    run(log, now_ms=START_MS + RULES.delete_retention_ms)
    assert pairs(log) == []


def test_a_value_behind_a_tombstone_stays() -> None:
    log = a_log()
    write(log, ("a", "1"), ("a", None), ("a", "2"))
    roll(log)
    for _ in range(3):
        run(log, now_ms=START_MS + 10_000)
    assert pairs(log) == [(2, ("a", "2"))]


def test_keys_beyond_the_limit_wait_for_the_next_pass() -> None:
    config = replace(TINY, compaction_keys_max=4)
    log = a_log(config=config)
    for number in range(40):
        write(log, (f"key-{number % 8}", f"{number}"), (f"key-{number % 3}", f"again {number}"))
    roll(log)
    wanted = latest(log)
    before = len(pairs(log))
    run(log)
    after = len(pairs(log))
    assert after < before
    for _ in range(40):
        run(log)
    assert latest(log) == wanted
    closed = list(log.each_info())[-1].base
    keys = [key for offset, (key, _) in pairs(log) if offset < closed]
    assert len(keys) == len(set(keys)) == 8


def test_long_keys_are_distinguished() -> None:
    log = a_log(config=replace(TINY, segment_bytes_max=4000))
    long = "k" * 100
    write(log, (long + "1", "1"), (long + "2", "1"), (long + "1", "2"))
    roll(log)
    run(log)
    assert [offset for offset, _ in pairs(log)] == [1, 2]


def test_a_pass_that_would_change_nothing_writes_nothing() -> None:
    disk = a_disk()
    log = a_log(disk)
    write(log, ("a", "1"), ("b", "1"))
    roll(log)
    run(log)
    before = disk.operations
    run(log)
    assert disk.operations == before


def test_a_fully_compacted_segment_can_still_be_read_over() -> None:
    log = a_log()
    write(log, ("a", "1" * 450))
    write(log, ("a", "2" * 450))
    write(log, ("a", "3"))
    roll(log)
    run(log)
    assert next(iter(log.each_info())).bytes == 0
    assert log.first_base == 0
    assert log.batch_base(0) == 2
    found = log.find_time(START_MS)
    assert found is not None and BatchView(found).base_offset == 2


def test_a_compacted_log_can_be_searched_by_offset_and_time_after_a_restart() -> None:
    disk = a_disk()
    log = a_log(disk, config=replace(TINY, segment_bytes_max=3000))
    for number in range(120):
        write(log, (f"k{number % 7}", "v"), (f"k{number}", "w" * 5), at_ms=START_MS + number)
    run(log)
    expected = contents(log)
    times = {ms: log.find_time(START_MS + ms) for ms in range(120)}
    log.close()
    log = recover(disk, log.point(), config=log.config)
    assert contents(log) == expected
    assert {ms: log.find_time(START_MS + ms) for ms in range(120)} == times


def test_a_damaged_batch_is_reported_and_not_copied() -> None:
    disk = a_disk()
    log = a_log(disk)
    write(log, ("a", "1"), ("a", "2"))
    roll(log)
    overwrite(disk, path(0), log.read(0, 1).nbytes - 2, b"?")
    with pytest.raises(CorruptLog):
        run(log)
    assert not any(name.endswith(".cleaned") for name in disk.list(FOLDER))


def test_a_full_disk_ends_the_pass_and_leaves_nothing_behind() -> None:
    disk = a_disk()
    log = a_log(disk)
    write(log, ("a", "1"), ("a", "2"))
    roll(log)
    before = contents(log)
    disk.faults = DiskFaults(full_at_bytes=disk.used_bytes + 10)
    with pytest.raises(DiskFull):
        run(log)
    assert contents(log) == before
    assert not any(name.endswith(".cleaned") for name in disk.list(FOLDER))


def test_a_failed_sync_ends_the_pass_with_the_old_segment() -> None:
    disk = a_disk()
    log = a_log(disk)
    write(log, ("a", "1"), ("a", "2"))
    roll(log)
    before = contents(log)
    disk.fail_next_sync()
    with pytest.raises(DiskFailed):
        run(log)
    assert contents(log) == before


def a_log_worth_compacting(disk: SimDisk) -> Segments:
    log = a_log(disk)
    for number in range(12):
        write(log, ("a", f"{number}"), (f"b{number % 3}", "x" * 60))
    roll(log)
    return log


def each_step() -> Iterator[int]:
    yield from range(run(a_log_worth_compacting(a_disk())))


def drop_some(log: Segments) -> None:
    log.drop_before(list(log.each_info())[2].base)


def write_on(log: Segments) -> None:
    append(log, 20)


def start_over(log: Segments) -> None:
    log.reset(900)


@pytest.mark.parametrize("other_work", [drop_some, write_on, start_over])
def test_the_log_may_be_used_between_any_two_steps(other_work: Callable[[Segments], None]) -> None:
    for number in each_step():
        disk = a_disk()
        log = a_log_worth_compacting(disk)
        undisturbed = a_log_worth_compacting(a_disk())
        for step, _ in enumerate(
            compact(log, below=log.end_offset, ages=Ages(now_ms=START_MS), rules=RULES)
        ):
            if step == number:
                other_work(log)
                other_work(undisturbed)
        assert latest(log) == latest(undisturbed)
        sync(log)
        assert contents(recover(disk, log.point(), start=log.first_base)) == contents(log)


def test_a_pass_abandoned_at_any_step_leaves_no_file_and_loses_no_key() -> None:
    for number in each_step():
        disk = a_disk()
        log = a_log_worth_compacting(disk)
        wanted = latest(log)
        steps = compact(log, below=log.end_offset, ages=Ages(now_ms=START_MS), rules=RULES)
        for _ in range(number):
            next(steps)
        del steps
        assert latest(log) == wanted
        assert not any(name.endswith(".cleaned") for name in disk.list(FOLDER))


def test_compaction_never_changes_the_final_value_of_a_key() -> None:
    for seed in range(30):
        chance = random.Random(seed)
        config = replace(TINY, compaction_keys_max=chance.choice([1, 5, 100]))
        log = a_log(a_disk(seed), config=config)
        wanted: dict[str | None, str | None] = {}
        for _ in range(60):
            batch: list[Pair] = [
                (f"k{chance.randrange(12)}", chance.choice([None, "v", "w" * 40]))
                for _ in range(chance.randint(1, 4))
            ]
            write(log, *batch, codec=chance.choice(list(Codec)))
            wanted.update(batch)
            if chance.random() < 0.2:
                run(log, now_ms=START_MS + chance.choice([0, 5000]))
        found = dict(pair for _, pair in pairs(log))
        assert without_gone(found) == without_gone(wanted)


def without_gone(state: dict[str | None, str | None]) -> dict[str | None, str | None]:
    return {key: value for key, value in state.items() if value is not None}
