"""The plain reader reads what the sink encodes, and keys go where Kafka's own client puts them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.record.build import wrap_records
from kafkaesque.record.key_partition import partition_of
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView
from kafkaesque.spark.decode import ARROW_TYPES
from kafkaesque.spark.encode import encode, places_of_rows, rows_of, topics_of
from kafkaesque.spark.errors import BadOption

pytestmark = pytest.mark.spark

NULLABLE = st.none() | st.binary(max_size=200)
HEADERS = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=4), "value": NULLABLE}), max_size=3
)
ROWS = st.lists(
    st.fixed_dictionaries({"key": NULLABLE, "value": NULLABLE, "headers": HEADERS}), max_size=20
)
SCHEMA = pa.schema([(name, ARROW_TYPES[name]) for name in ("key", "value", "headers")])


def a_batch(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def written(batch: pa.RecordBatch, batch_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    found = []
    for one in encode(rows_of(batch), np.arange(batch.num_rows), batch_bytes, 5):
        built = wrap_records(one.data, record_count=one.count, timestamp_ms=one.timestamp_ms)
        view = BatchView(built)
        view.check()
        for record in read_records(view):
            headers = [{"key": key, "value": value} for key, value in record.headers]
            found.append({"key": record.key, "value": record.value, "headers": headers})
    return found


@given(rows=ROWS, batch_bytes=st.integers(1, 2_000))
def test_rows_are_read_back_as_they_were(rows: list[dict[str, Any]], batch_bytes: int) -> None:
    wanted = [{**row, "headers": row["headers"] or []} for row in rows]
    assert written(a_batch(rows), batch_bytes) == wanted


@given(
    times_ms=st.lists(st.integers(-1, 4_000_000_000_000), min_size=1),
    batch_bytes=st.integers(1, 500),
)
def test_rows_keep_their_own_timestamps(times_ms: list[int], batch_bytes: int) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "value": pa.array([b"v"] * len(times_ms)),
            "timestamp": pa.array([t * 1_000 for t in times_ms], pa.timestamp("us", tz="UTC")),
        }
    )
    found = []
    rows = rows_of(batch, with_times=True)
    for one in encode(rows, np.arange(batch.num_rows), batch_bytes, 5):
        built = wrap_records(
            one.data,
            record_count=one.count,
            timestamp_ms=one.timestamp_ms,
            timestamp_ms_max=one.timestamp_ms_max,
        )
        own = [record.timestamp_ms for record in read_records(BatchView(built))]
        assert BatchView(built).max_timestamp_ms == max(own)
        found += own
    assert found == times_ms


@given(rows=ROWS, start=st.integers(0, 20))
def test_a_slice_of_rows_is_written_correctly(rows: list[dict[str, Any]], start: int) -> None:
    assert written(a_batch(rows).slice(start)) == written(a_batch(rows))[start:]


@given(keys=st.lists(st.binary(max_size=40), min_size=1), partitions=st.integers(1, 50))
def test_keys_go_where_kafkas_own_client_puts_them(keys: list[bytes], partitions: int) -> None:
    batch = a_batch([{"key": key, "value": b"", "headers": None} for key in keys])
    found = dict(places_of_rows(batch, rows_of(batch), "t", {"t": partitions}, 0))
    where = {int(row): place[1] for place, numbers in found.items() for row in numbers}
    assert where == {row: partition_of(key, partitions) for row, key in enumerate(keys)}


def test_the_column_partition_wins_over_the_key_and_order_is_kept() -> None:
    schema = pa.schema([("key", pa.string()), ("value", pa.string()), ("partition", pa.int32())])
    rows = [{"key": "k", "value": str(n), "partition": n % 2} for n in range(6)]
    batch = a_batch(rows, schema)
    found = dict(places_of_rows(batch, rows_of(batch), "t", {"t": 3}, 0))
    assert {place: list(numbers) for place, numbers in found.items()} == {
        ("t", 0): [0, 2, 4],
        ("t", 1): [1, 3, 5],
    }


def test_rows_without_a_key_take_partitions_in_turn() -> None:
    batch = a_batch([{"key": None, "value": b"v", "headers": None}] * 3)
    places = [list(dict(places_of_rows(batch, rows_of(batch), "t", {"t": 2}, n))) for n in range(3)]
    assert places == [[("t", 0)], [("t", 1)], [("t", 0)]]


def test_each_row_goes_to_its_own_topic() -> None:
    schema = pa.schema([("value", pa.string()), ("topic", pa.string())])
    batch = a_batch([{"value": "1", "topic": name} for name in "aba"], schema)
    assert topics_of(batch) == ["a", "b"]
    found = dict(places_of_rows(batch, rows_of(batch), None, {"a": 1, "b": 1}, 0))
    assert [list(found["a", 0]), list(found["b", 0])] == [[0, 2], [1]]


@pytest.mark.parametrize("number", [-1, 3])
def test_a_missing_partition_is_refused(number: int) -> None:
    schema = pa.schema([("value", pa.string()), ("partition", pa.int32())])
    batch = a_batch([{"value": "1", "partition": number}], schema)
    with pytest.raises(BadOption, match="column partition has"):
        list(places_of_rows(batch, rows_of(batch), "t", {"t": 3}, 0))


def test_a_row_without_topic_is_refused() -> None:
    schema = pa.schema([("value", pa.string()), ("topic", pa.string())])
    with pytest.raises(BadOption, match="column topic is null"):
        topics_of(a_batch([{"value": "1", "topic": None}], schema))
