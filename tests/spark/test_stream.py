"""Streaming queries lose nothing: across restarts, truncation and added partitions."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kafkaesque.clock import SystemClock
from kafkaesque.spark.clients import forget_all
from kafkaesque.spark.errors import DataLost
from kafkaesque.spark.options import Mode, parse_read, parse_write
from kafkaesque.spark.sink import partition_count
from kafkaesque.spark.stream import StreamReader
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.client.fake_broker import FakeBroker
from tests.client.test_router import a_laggard
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import to_its_end
from tests.spark.test_source import delete_before

pytestmark = pytest.mark.spark

NOW_MS = SystemClock().now_ms()
ALL = ReadAllAvailable()


def a_reader(topics: Topics, topic: str, **options: str) -> StreamReader:
    given = topics.options(subscribe=topic, **options)
    return StreamReader(parse_read(given, Mode.STREAM), ("partition", "offset"))


def rows(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
    return sorted(
        (row["partition"], row["offset"])
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    )


def test_the_first_offset_stays_the_same_and_makes_an_empty_batch(topics: Topics) -> None:
    name = topics.create("anchored")
    topics.count(name, 0, 0, 10, NOW_MS)
    reader = a_reader(topics, name)
    start = reader.initialOffset()
    topics.count(name, 0, 10, 20, NOW_MS)
    assert reader.initialOffset() == start
    first = reader.latestOffset(start, ALL)
    assert first == {name: {"0": 10}}
    assert reader.partitions(start, first) == []
    second = reader.latestOffset(first, ALL)
    assert rows(reader, first, second) == [(0, n) for n in range(10, 20)]


def test_a_batch_has_no_more_offsets_than_allowed(topics: Topics) -> None:
    name = topics.create("bounded", 2)
    topics.count(name, 0, 0, 30, NOW_MS)
    topics.count(name, 1, 0, 10, NOW_MS)
    reader = a_reader(topics, name, startingOffsets="earliest", maxOffsetsPerTrigger="8")
    assert reader.getDefaultReadLimit() == ReadMaxRows(8)
    start = reader.latestOffset(reader.initialOffset(), ALL)
    end = reader.latestOffset(start, ReadMaxRows(8))
    assert end == {name: {"0": 6, "1": 2}}
    assert len(rows(reader, start, end)) == 8


def test_a_small_micro_batch_is_one_task_unless_more_are_requested(topics: Topics) -> None:
    name = topics.create("bundled", 3)
    for partition in range(3):
        topics.count(name, partition, 0, 10, NOW_MS)
    start, end = {name: {"0": 0, "1": 0, "2": 0}}, {name: {"0": 10, "1": 10, "2": 10}}
    wanted = [(partition, n) for partition in range(3) for n in range(10)]
    for options, tasks in (({}, 1), ({"minPartitions": "6"}, 6)):
        reader = a_reader(topics, name, **options)
        assert len(reader.partitions(start, end)) == tasks
        assert rows(reader, start, end) == wanted


def test_a_large_micro_batch_is_one_task_for_each_partition(topics: Topics) -> None:
    name = topics.create("unbundled", 2)
    start, end = {name: {"0": 0, "1": 0}}, {name: {"0": 5_000, "1": 5_000}}
    assert len(a_reader(topics, name).partitions(start, end)) == 2


def test_added_partitions_are_read_from_their_first_record(topics: Topics) -> None:
    name = topics.create("growing")
    reader = a_reader(topics, name)
    start = reader.latestOffset(reader.initialOffset(), ALL)
    topics.admin.topics.add_partitions(name, 3)
    topics.count(name, 2, 0, 5, NOW_MS)
    end = reader.latestOffset(start, ALL)
    assert end == {name: {"0": 0, "1": 0, "2": 5}}
    assert rows(reader, start, end) == [(2, n) for n in range(5)]


def test_finished_offsets_and_no_others_are_committed_to_the_group(topics: Topics) -> None:
    name = topics.create("mirrored", 2)
    topics.count(name, 0, 0, 5, NOW_MS)
    given = {"startingOffsets": "earliest", "kafka.group.id": "mirror"}
    reader = a_reader(topics, name, **given)
    start = reader.latestOffset(reader.initialOffset(), ALL)
    end = reader.latestOffset(start, ALL)
    assert topics.admin.groups.offsets("mirror") == {(name, 0): 0, (name, 1): 0}
    reader.latestOffset(end, ALL)
    assert topics.admin.groups.offsets("mirror") == {(name, 0): 5, (name, 1): 0}


def test_an_available_now_query_ends_where_the_topic_ended_at_its_start(topics: Topics) -> None:
    name = topics.create("settled")
    topics.count(name, 0, 0, 5, NOW_MS)
    reader = a_reader(topics, name, startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    start = reader.latestOffset(reader.initialOffset(), ALL)
    topics.count(name, 0, 5, 10, NOW_MS)
    end = reader.latestOffset(start, ALL)
    assert end == {name: {"0": 5}}
    assert reader.latestOffset(end, ALL) == end
    assert reader.reportLatestOffset() == {name: {"0": 10}}


def test_a_truncated_topic_is_an_error_by_default(topics: Topics) -> None:
    name = topics.create("truncated")
    topics.count(name, 0, 0, 20, NOW_MS)
    delete_before(topics, name, 0, 15)
    start, end = {name: {"0": 10}}, {name: {"0": 20}}
    with pytest.raises(DataLost, match="starts at 15, but offset 10 must be read"):
        a_reader(topics, name).partitions(start, end)
    tolerant = a_reader(topics, name, failOnDataLoss="false")
    assert rows(tolerant, start, end) == [(0, n) for n in range(15, 20)]


def test_a_recreated_topic_never_moves_a_query_back(topics: Topics) -> None:
    name = topics.create("anew")
    topics.count(name, 0, 0, 5, NOW_MS)
    start = {name: {"0": 50}}
    with pytest.raises(DataLost, match="ends at 5, but was read up to offset 50"):
        a_reader(topics, name).latestOffset(start, ALL)
    assert a_reader(topics, name, failOnDataLoss="false").latestOffset(start, ALL) == start


def test_a_deleted_topic_is_an_error_by_default(topics: Topics) -> None:
    start = {"vanished": {"0": 7}}
    with pytest.raises(DataLost, match="vanished"):
        a_reader(topics, "vanished").latestOffset(start, ALL)
    tolerant = a_reader(topics, "vanished", failOnDataLoss="false")
    assert tolerant.latestOffset(start, ALL) == start


def test_data_unknown_to_a_lagging_broker_is_not_reported_as_lost() -> None:
    row = ListOffsetsPartitionResponse(partition_index=0, error_code=ErrorCode.NONE, offset=9)
    found = ListOffsetsTopicResponse(name="orders", partitions=(row,))
    table = {ListOffsetsRequest: ListOffsetsResponse(topics=(found,))}
    with FakeBroker(table, topics={"orders": 1}) as controller, a_laggard(controller) as laggard:
        given = {"kafka.bootstrap.servers": laggard.bootstrap, "subscribe": "orders"}
        reader = StreamReader(parse_read(given, Mode.STREAM), ("offset",))
        assert reader.latestOffset({"orders": {"0": 7}}, ALL) == {"orders": {"0": 9}}
        writing = {"kafka.bootstrap.servers": laggard.bootstrap, "topic": "orders"}
        assert partition_count(parse_write(writing, Mode.STREAM), "orders") == 1
        forget_all()


@pytest.mark.requirement("PIPE-1")
def test_a_killed_query_continues_from_its_checkpoint_and_loses_nothing(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("killed", 2)
    topics.count(name, 0, 0, 10, NOW_MS)  # before the query, which starts at the latest
    found: dict[int, list[int]] = {}
    kills = [True]

    def keep(frame: Any, number: int) -> None:
        values = [int(row.value) for row in frame.collect()]
        if values and kills and kills.pop():
            raise RuntimeError("killed in the middle of a batch")
        found[number] = values

    def start() -> Any:
        frame = spark.readStream.format("kafkaesque").options(**topics.options(subscribe=name))
        return (
            frame.load()
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path))
            .start()
        )

    query = start()
    query.processAllAvailable()
    topics.count(name, 0, 10, 20, NOW_MS)
    with pytest.raises(Exception, match="killed in the middle"):
        query.processAllAvailable()
    topics.count(name, 1, 20, 30, NOW_MS)
    query = start()
    query.processAllAvailable()
    topics.admin.topics.add_partitions(name, 3)
    topics.count(name, 2, 30, 40, NOW_MS)
    query.processAllAvailable()
    query.stop()
    assert sorted(value for values in found.values() for value in values) == list(range(10, 40))


def test_a_truncated_topic_stops_a_query_with_a_message(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("cut")
    topics.count(name, 0, 0, 10, NOW_MS)

    def drain(**options: str) -> int:
        given = topics.options(subscribe=name, startingOffsets="earliest", **options)
        writer = (
            spark.readStream.format("kafkaesque")
            .options(**given)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
        )
        query = to_its_end(writer.start)
        return sum(progress.numInputRows for progress in query.recentProgress)

    assert drain() == 10
    topics.count(name, 0, 10, 30, NOW_MS)
    delete_before(topics, name, 0, 25)
    with pytest.raises(Exception, match="failOnDataLoss"):
        drain()
    assert drain(failOnDataLoss="false") == 5
