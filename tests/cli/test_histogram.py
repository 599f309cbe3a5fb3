"""Percentiles of known values, and the small error of buckets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.cli.histogram import Histogram, bucket_top

LATENCIES = st.lists(st.integers(min_value=0, max_value=10**12), min_size=1, max_size=200)


def test_percentiles_of_a_hundred_values_are_their_ranks() -> None:
    histogram = Histogram((value, 1) for value in range(1, 51))
    assert histogram.percentile(50) == 25
    assert histogram.percentile(98) == 49
    assert histogram.percentile(98.1) == 50
    assert histogram.percentile(100) == 50
    assert histogram.percentile(0) == 1


def test_a_rank_is_exact_for_percentages_that_no_float_can_represent() -> None:
    histogram = Histogram([(10, 999), (60, 1)])
    assert histogram.percentile(99.9) == 10
    assert histogram.percentile(99.91) == 60


@given(LATENCIES, st.sampled_from([0.0, 50.0, 90.0, 99.0, 99.9, 100.0]))
def test_a_percentile_is_at_most_three_percent_above_the_true_one(
    latencies: list[int], percent: float
) -> None:
    histogram = Histogram()
    for latency in latencies:
        histogram.add(latency)
    rank = max(1, -(-round(percent * 1000) * len(latencies) // 100_000))
    true = sorted(latencies)[rank - 1]
    assert true <= histogram.percentile(percent) <= true * (1 + 1 / 32) + 1


@given(LATENCIES, LATENCIES)
def test_two_merged_histograms_equal_one_of_all_values(left: list[int], right: list[int]) -> None:
    merged = Histogram((value, 1) for value in left)
    merged.merge(Histogram((value, 1) for value in right))
    assert merged.pairs() == Histogram((value, 1) for value in left + right).pairs()


@given(st.integers(min_value=0, max_value=10**15))
def test_the_top_of_a_bucket_is_in_it(value: int) -> None:
    assert bucket_top(bucket_top(value)) == bucket_top(value) >= value


def test_an_empty_histogram_has_no_percentiles() -> None:
    with pytest.raises(ValueError, match="no latencies"):
        Histogram().percentile(50)
