"""Ranges are divided among tasks and micro-batches without gaps and without overlaps."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.client.topics import Place
from kafkaesque.spark.options import Mode, ReadOptions, parse_read
from kafkaesque.spark.ranges import OffsetRange, admit, split


def options(**more: str) -> ReadOptions:
    given_options = {"kafka.bootstrap.servers": "localhost", "subscribe": "t", **more}
    return parse_read(given_options, Mode.BATCH)


def a_range(start: int, end: int, partition: int = 0) -> OffsetRange:
    return OffsetRange(topic="t", partition=partition, start=start, end=end)


def covered(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(one.partition, offset) for one in ranges for offset in range(one.start, one.end)]


def test_by_default_each_partition_is_one_task() -> None:
    parts = [a_range(0, 10), a_range(5, 6, partition=1)]
    assert split(parts, options()) == parts


def test_an_empty_range_needs_no_task() -> None:
    assert split([a_range(7, 7)], options()) == []


def test_a_large_range_gets_more_tasks_than_a_small_one() -> None:
    parts = split([a_range(0, 90), a_range(0, 10, partition=1)], options(minPartitions="10"))
    assert [one.partition for one in parts].count(0) == 9
    assert [one.partition for one in parts].count(1) == 1


def test_no_task_reads_more_than_its_maximum() -> None:
    parts = split([a_range(0, 95)], options(maxRecordsPerPartition="10"))
    assert max(one.size for one in parts) <= 10


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=5),
    tasks=st.integers(1, 40),
    most=st.integers(1, 40),
)
def test_splitting_loses_and_duplicates_no_offset(sizes: list[int], tasks: int, most: int) -> None:
    ranges = [a_range(3, 3 + size, partition=number) for number, size in enumerate(sizes)]
    wish = options(minPartitions=str(tasks), maxRecordsPerPartition=str(most))
    assert covered(split(ranges, wish)) == covered(ranges)


def test_everything_is_admitted_if_it_fits() -> None:
    ends: Mapping[Place, int] = {("t", 0): 5, ("t", 1): 9}
    assert admit({("t", 0): 0, ("t", 1): 4}, ends, 10) == ends


@pytest.mark.parametrize("rows_max", [1, 2, 7, 100, 999])
def test_the_admitted_total_is_the_limit_or_slightly_less(rows_max: int) -> None:
    ends: Mapping[Place, int] = {("t", 0): 1_000, ("t", 1): 10, ("t", 2): 1}
    starts = dict.fromkeys(ends, 0)
    admitted = admit(starts, ends, rows_max)
    total = sum(admitted.values())
    assert max(1, rows_max - len(ends)) <= total <= rows_max
    assert all(admitted[place] <= ends[place] for place in ends)


def test_a_small_partition_is_not_starved_by_a_large_one() -> None:
    ends: Mapping[Place, int] = {("t", 0): 1_000_000, ("t", 1): 1}
    assert admit(dict.fromkeys(ends, 0), ends, 100)["t", 1] == 1
