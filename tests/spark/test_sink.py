"""Rows that a query writes are in the right topic and partition, and wrong ones are named."""

from pathlib import Path
from typing import Any

import pytest

from kafkaesque.record.key_partition import partition_of
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.options import Mode, parse_write
from kafkaesque.spark.sink_columns import check_columns
from kafkaesque.testing import Broker
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import to_its_end

pytestmark = pytest.mark.spark


def records(topics: Topics, topic: str) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for partition in topics.admin.topics.describe(topic).partitions:
        fetched = topics.admin.batches.fetch(topic, partition.index, 0)
        for batch in fetched.batches:
            found.setdefault(partition.index, []).extend(read_records(batch))
    return found


@pytest.mark.requirement("PIPE-1")
def test_rows_of_a_batch_query_are_written_with_keys_headers_and_nulls(
    spark: Any, topics: Topics
) -> None:
    name = topics.create("written", 3)
    frame = spark.range(0, 1_000, 1, 4).selectExpr(
        "concat('key ', id) as key",
        "if(id % 7 = 0, null, concat('value ', id)) as value",
        "array(named_struct('key', 'id', 'value', cast(string(id) as binary))) as headers",
        "id as ignored",
    )
    options = topics.options(topic=name, **{"kafka.compression.type": "lz4"})
    frame.write.format("kafkaesque").options(**options).mode("append").save()
    found = records(topics, name)
    assert sum(len(rows) for rows in found.values()) == 1_000
    for partition, rows in found.items():
        for row in rows:
            number = int(row.headers[0][1] or b"")
            assert row.key == b"key %d" % number
            assert row.value == (None if number % 7 == 0 else b"value %d" % number)
            assert partition == partition_of(row.key, 3)


@pytest.mark.requirement("PIPE-1")
def test_a_streaming_query_copies_one_topic_into_others(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("from", 2)
    topics.create("even", 1)
    topics.create("odd", 2)
    topics.count(source, 0, 0, 100, 1_900_000_000_000)
    topics.count(source, 1, 100, 200, 1_900_000_000_000)
    reading = topics.options(
        subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="150"
    )
    frame = spark.readStream.format("kafkaesque").options(**reading).load()
    writer = (
        frame.selectExpr(
            "value",
            "if(int(string(value)) % 2 = 0, 'even', 'odd') as topic",
            "if(int(string(value)) % 2 = 0, 0, 1) as partition",
        )
        .writeStream.format("kafkaesque")
        .options(**topics.options())
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
    )
    query = to_its_end(writer.start)
    even, odd = records(topics, "even"), records(topics, "odd")
    assert even.keys() == {0}
    assert odd.keys() == {1}
    assert sorted(int(row.value or b"") for row in even[0]) == list(range(0, 200, 2))
    assert sorted(int(row.value or b"") for row in odd[1]) == list(range(1, 200, 2))
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [150, 50]


def test_a_missing_topic_is_created_if_the_broker_does_that(spark: Any, topics: Topics) -> None:
    frame = spark.range(3).selectExpr("string(id) as value").write.format("kafkaesque")
    frame.options(**topics.options(topic="made-by-writing")).mode("append").save()
    rows = [row for rows in records(topics, "made-by-writing").values() for row in rows]
    assert sorted(row.value or b"" for row in rows) == [b"0", b"1", b"2"]


def test_otherwise_a_missing_topic_is_named(spark: Any) -> None:
    frame = spark.range(1).selectExpr("string(id) as value").write.format("kafkaesque")
    with Broker(auto_create_topics=False) as broker:
        options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "missing"}
        with pytest.raises(Exception, match="topic missing does not exist, and the broker does"):
            frame.options(**options).mode("append").save()


def test_the_default_mode_is_refused_by_spark_before_it_asks_us(spark: Any, topics: Topics) -> None:
    """Once this fails, Spark lets a source in Python decide: then ours should append."""
    frame = spark.range(1).selectExpr("string(id) as value").write.format("kafkaesque")
    with pytest.raises(Exception, match='cannot be written in the "ErrorIfExists" mode'):
        frame.options(**topics.options(topic="written")).save()


def test_overwriting_is_refused(spark: Any, topics: Topics) -> None:
    frame = spark.range(1).selectExpr("string(id) as value").write.format("kafkaesque")
    with pytest.raises(Exception, match="mode overwrite is not supported"):
        frame.options(**topics.options(topic="written")).mode("overwrite").save()


@pytest.mark.parametrize(
    ("types", "named"),
    [
        ({"key": "string"}, "column value is missing"),
        ({"value": "bigint"}, "column value is of type bigint, but must be string or binary"),
        ({"value": "string", "key": "int"}, "column key is of type int"),
        ({"value": "string", "partition": "bigint"}, "column partition is of type bigint"),
        ({"value": "string", "headers": "string"}, "column headers is of type string"),
        ({"value": "string", "topic": "int"}, "column topic is of type int"),
    ],
)
def test_a_column_of_the_wrong_type_is_named(types: dict[str, str], named: str) -> None:
    options = parse_write({"kafka.bootstrap.servers": "localhost", "topic": "t"}, Mode.STREAM)
    with pytest.raises(BadOption, match=named):
        check_columns(types, options)


def test_a_sink_without_a_topic_is_refused() -> None:
    options = parse_write({"kafka.bootstrap.servers": "localhost"}, Mode.STREAM)
    with pytest.raises(BadOption, match="topic is missing"):
        check_columns({"value": "string"}, options)
