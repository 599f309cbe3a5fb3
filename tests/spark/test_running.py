"""How far a query lags behind, from what Spark reports."""

from kafkaesque.spark.pipelines.running import Fare, lag, table


def test_lag_is_what_lies_behind_the_end_of_the_last_batch() -> None:
    source = {"endOffset": '{"t":{"0":5}}', "latestOffset": '{"t":{"0":8,"1":4}}'}
    assert lag(source) == 7


def test_a_source_that_read_nothing_yet_reports_no_lag() -> None:
    assert lag({"endOffset": None, "latestOffset": None}) == 0


def test_the_anchor_of_a_first_batch_is_no_topic() -> None:
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
