"""How far a query lags behind, from what Spark reports."""

from typing import Any

import pytest

from kafkaesque.spark.errors import QueryFailed
from kafkaesque.spark.pipelines.query_runner import Fare, lag, run, table


def test_lag_is_the_distance_to_the_end_of_the_last_batch() -> None:
    source = {"endOffset": '{"t":{"0":5}}', "latestOffset": '{"t":{"0":8,"1":4}}'}
    assert lag(source) == 7


def test_a_source_that_has_read_nothing_reports_no_lag() -> None:
    assert lag({"endOffset": None, "latestOffset": None}) == 0


def test_the_anchor_of_a_first_batch_does_not_count_as_a_topic() -> None:
    assert lag({"endOffset": {":anchor": 1}, "latestOffset": {":anchor": 1, "t": {"0": 2}}}) == 2


def test_the_view_has_a_line_for_each_query() -> None:
    fare = Fare(
        name="q",
        batch=1,
        rows=2,
        rows_per_s=3.0,
        lag=4,
        state_rows=5,
        state_bytes=6,
        batch_ms=7,
    )
    assert table([fare, fare]).row_count == 2


class Query:
    """A query that ends at once, as Spark would report it."""

    name = "q"
    isActive = False  # noqa: N815 - Spark's name
    lastProgress = None  # noqa: N815 - Spark's name
    recentProgress: tuple[Any, ...] = ()  # noqa: N815 - Spark's name

    def __init__(self, error: str | None) -> None:
        self._error = error

    def exception(self) -> str | None:
        return self._error

    def stop(self) -> None:
        """Nothing is left to stop."""


def test_a_query_whose_worker_was_slow_to_start_is_restarted() -> None:
    errors = ["Python worker failed to connect back.", None]
    fares = run([lambda: Query(errors.pop(0))], lambda _: None, is_in_turn=True)
    assert errors == []
    assert [one.name for one in fares] == ["q"]


def test_a_query_whose_worker_never_starts_fails_in_the_end() -> None:
    with pytest.raises(QueryFailed, match="too busy 6 times in a row: run it again"):
        run([lambda: Query("failed to connect back")], lambda _: None, is_in_turn=True)


@pytest.mark.parametrize("module", ["errors", "spark.errors"])
def test_a_query_that_fails_otherwise_is_not_restarted(module: str) -> None:
    queries = [Query(f"Traceback:\n  File\nkafkaesque.{module}.BadOption: topic is missing\nmore")]
    with pytest.raises(QueryFailed, match="query q failed: topic is missing"):
        run([queries.pop], lambda _: None, is_in_turn=True)
