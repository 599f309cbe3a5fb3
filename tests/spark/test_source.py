"""Batch queries read exactly the records between the requested positions."""

import json
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kafkaesque.client.errors import Unreachable
from kafkaesque.client.topics import Place
from kafkaesque.clock import SystemClock
from kafkaesque.errors import UnknownTopic
from kafkaesque.record.record import Record
from kafkaesque.record.view import Codec
from kafkaesque.spark.errors import BadOption, DataLost
from kafkaesque.spark.options import Mode, parse_read
from kafkaesque.spark.source import BatchReader
from tests.spark.conftest import Topics

pytestmark = pytest.mark.spark

NOW_MS = SystemClock().now_ms()


def delete_before(topics: Topics, topic: str, partition: int, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": topics.bootstrap})
    admin.delete_records([TopicPartition(topic, partition, offset)])[
        TopicPartition(topic, partition, offset)
    ].result(10)


def read(topics: Topics, **options: str) -> dict[Place, list[int]]:
    """Read without Spark: the reader in this process, like one task after the other."""
    reader = BatchReader(parse_read(topics.options(**options), Mode.BATCH), ("offset",))
    found: dict[Place, list[int]] = {}
    for partition in reader.partitions():
        rows = [row["offset"] for batch in reader.read(partition) for row in batch.to_pylist()]
        found.setdefault((partition.part.topic, partition.part.partition), []).extend(rows)
    return found


@pytest.fixture(scope="module")
def numbers(topics: Topics) -> str:
    """A topic with 100 numbers in partition 0, a minute between them, and 10 in partition 1."""
    name = topics.create("numbers", 2)
    for start in range(0, 100, 25):
        records = [
            Record(offset=n - start, timestamp_ms=NOW_MS + 60_000 * n, key=None, value=b"%d" % n)
            for n in range(start, start + 25)
        ]
        topics.put(name, 0, records)
    topics.count(name, 1, 0, 10, NOW_MS)
    return name


@pytest.mark.requirement("PIPE-1")
def test_a_batch_query_reads_what_was_produced(spark: Any, topics: Topics) -> None:
    name = topics.create("codecs", len(Codec))
    wanted = []
    for codec in Codec:
        records = [
            Record(
                offset=number,
                timestamp_ms=NOW_MS + number,
                key=None if number % 3 == 0 else b"key %d" % number,
                value=None if number % 5 == 0 else b"value %d" % number * 10,
                headers=(("h", b"x"), ("h", None)) if number % 2 else (),
            )
            for number in range(50)
        ]
        topics.put(name, codec, records, codec)
        wanted += [
            (
                one.key,
                one.value,
                name,
                int(codec),
                one.offset,
                one.timestamp_ms,
                0,
                [tuple(pair) for pair in one.headers] or None,
            )
            for one in records
        ]
    options = topics.options(subscribe=name, includeHeaders="true")
    rows = (
        spark.read.format("kafkaesque")
        .options(**options)
        .load()
        .selectExpr("*", "unix_millis(timestamp) as ms")
        .collect()
    )
    found = [
        (
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            row.topic,
            row.partition,
            row.offset,
            row.ms,
            row.timestampType,
            row.headers
            and [(h.key, None if h.value is None else bytes(h.value)) for h in row.headers],
        )
        for row in rows
    ]
    assert sorted(found, key=lambda row: row[3:5]) == wanted


def test_spark_finds_the_format_without_registration(
    spark: Any, topics: Topics, numbers: str
) -> None:
    frame = spark.newSession().read.format("kafkaesque").options(**topics.options(assign="{}"))
    with pytest.raises(Exception, match="assign names no partition"):
        frame.load().count()


def test_a_query_may_select_only_some_columns(spark: Any, topics: Topics, numbers: str) -> None:
    source = spark.read.format("kafkaesque").options(**topics.options(subscribe=numbers))
    frame = source.schema("partition int, offset bigint").load()
    assert frame.groupBy("partition").count().orderBy("partition").collect() == [(0, 100), (1, 10)]
    with pytest.raises(Exception, match="column offset must be of type bigint"):
        source.schema("offset string").load().count()


def test_topics_can_be_named_by_a_pattern(topics: Topics, numbers: str) -> None:
    assert read(topics, subscribePattern="num.*").keys() == {(numbers, 0), (numbers, 1)}


def test_single_partitions_can_be_named(topics: Topics, numbers: str) -> None:
    assert read(topics, assign=json.dumps({numbers: [1]})) == {(numbers, 1): list(range(10))}


def test_offsets_bound_what_is_read(topics: Topics, numbers: str) -> None:
    found = read(
        topics,
        subscribe=numbers,
        startingOffsets=json.dumps({numbers: {"0": 30, "1": -2}}),
        endingOffsets=json.dumps({numbers: {"0": 60, "1": -1}}),
    )
    assert found == {(numbers, 0): list(range(30, 60)), (numbers, 1): list(range(10))}


def test_timestamps_bound_what_is_read(topics: Topics, numbers: str) -> None:
    times = {
        "startingOffsetsByTimestamp": json.dumps({numbers: {"0": NOW_MS + 60_000 * 40}}),
        "endingTimestamp": str(NOW_MS + 60_000 * 90),
    }
    found = read(topics, assign=json.dumps({numbers: [0]}), **times)
    assert found == {(numbers, 0): list(range(40, 90))}


def test_a_time_after_the_last_record_is_an_error_or_the_end(topics: Topics, numbers: str) -> None:
    late = {"subscribe": numbers, "startingTimestamp": str(NOW_MS + 60_000 * 50)}
    with pytest.raises(BadOption, match="partition 1 of topic numbers is as late"):
        read(topics, **late)
    found = read(topics, **late, startingOffsetsByTimestampStrategy="latest")
    assert found == {(numbers, 0): list(range(50, 100))}


def test_large_partitions_are_read_by_several_tasks(topics: Topics, numbers: str) -> None:
    options = parse_read(topics.options(subscribe=numbers, minPartitions="11"), Mode.BATCH)
    assert len(BatchReader(options, ("offset",)).partitions()) == 11
    assert read(topics, subscribe=numbers, minPartitions="11") == read(topics, subscribe=numbers)


@pytest.mark.parametrize(
    ("start", "end", "named"),
    [
        (50, 101, "endingOffsets: partition 0 of topic numbers ends at 100, before 101"),
        (60, 50, "startingOffsets: partition 0 of topic numbers would start at 60, after 50"),
    ],
)
def test_offsets_out_of_range_are_named(
    topics: Topics, numbers: str, start: int, end: int, named: str
) -> None:
    with pytest.raises(BadOption, match=named):
        read(
            topics,
            assign=json.dumps({numbers: [0]}),
            startingOffsets=json.dumps({numbers: {"0": start}}),
            endingOffsets=json.dumps({numbers: {"0": end}}),
        )


def test_a_partition_without_an_offset_is_named(topics: Topics, numbers: str) -> None:
    with pytest.raises(BadOption, match="startingOffsets lacks partition 1 of topic numbers"):
        read(topics, subscribe=numbers, startingOffsets=json.dumps({numbers: {"0": 5}}))


def test_an_unknown_topic_is_named(topics: Topics) -> None:
    with pytest.raises(UnknownTopic, match="topic nowhere"):
        read(topics, subscribe="nowhere")


def test_unreachable_brokers_are_named_at_once() -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        BatchReader(parse_read(options, Mode.BATCH), ("offset",)).partitions()


def test_deleted_records_are_an_error_by_default(topics: Topics) -> None:
    name = topics.create("gone")
    topics.count(name, 0, 0, 20, NOW_MS)
    delete_before(topics, name, 0, 15)
    first = json.dumps({name: {"0": 5}})
    with pytest.raises(DataLost, match="starts at 15, not at 5; set failOnDataLoss to false"):
        read(topics, subscribe=name, startingOffsets=first)
    found = read(topics, subscribe=name, startingOffsets=first, failOnDataLoss="false")
    assert found == {(name, 0): list(range(15, 20))}


def test_records_deleted_while_a_task_reads_are_an_error_by_default(topics: Topics) -> None:
    name = topics.create("going")
    topics.count(name, 0, 0, 20, NOW_MS)
    for is_strict in ("true", "false"):
        options = topics.options(subscribe=name, failOnDataLoss=is_strict)
        reader = BatchReader(parse_read(options, Mode.BATCH), ("offset",))
        (partition,) = reader.partitions()
        delete_before(topics, name, 0, 10 if is_strict == "true" else 12)
        if is_strict == "true":
            with pytest.raises(DataLost, match="has lost offset 0; it starts at 10"):
                list(reader.read(partition))
        else:
            rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]
            assert [row["offset"] for row in rows] == list(range(12, 20))
