"""Exactly-once queries: what Spark repeats counts once for readers of committed records."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.spark.pipelines.blocks import Place, each_batch, read_topic, write_topic
from tests.spark.committed import committed
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import NOW_MS, to_its_end

pytestmark = pytest.mark.spark

ROWS = 60
FORMAT = "kafkaesque"


def failing_once(rows: Any, flag: Path) -> Any:
    """Return rows whose first task to finish fails there, after it has written most."""

    def fail(batches: Any) -> Any:
        for batch in batches:
            middle = len(batch) // 2
            yield batch.slice(0, middle)
            yield batch.slice(middle)
        if not flag.exists():
            flag.touch()
            raise ValueError("the first attempt fails")

    return rows.mapInArrow(fail, "value string")


def write(rows: Any, topics: Topics, topic: str, **options: str) -> None:
    given = topics.options(topic=topic, **options)
    rows.write.format(FORMAT).options(**given).mode("append").save()


@pytest.mark.parametrize(("guarantee", "count"), [("exactly-once", ROWS), ("at-least-once", None)])
def test_a_repeated_task_counts_once_only_on_request(
    guarantee: str, count: int | None, spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(f"failing-{guarantee}", 2)
    # Long ones, so that some are written before the task fails, and are not in a buffer then.
    rows = spark.range(0, ROWS, 1, 1).selectExpr("lpad(string(id), 20000, ' ') as value")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    try:
        write(failing_once(rows, tmp_path / "failed"), topics, topic, deliveryGuarantee=guarantee)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert (tmp_path / "failed").exists()
    found = committed(topics, topic)
    assert set(found) == set(range(ROWS))
    assert (len(found) == count) if count is not None else (len(found) > ROWS)


def test_a_repeated_named_write_is_skipped(spark: Any, topics: Topics) -> None:
    topic = topics.create("named")
    rows = spark.range(0, ROWS, 1, 3).selectExpr("string(id) as value")
    named = {"deliveryGuarantee": "exactly-once", "txnAppId": "nightly"}
    write(rows, topics, topic, **named, txnVersion="7")
    write(rows.repartition(2), topics, topic, **named, txnVersion="7")
    assert committed(topics, topic) == list(range(ROWS))
    write(rows, topics, topic, **named, txnVersion="8")
    assert len(committed(topics, topic)) == 2 * ROWS
    with pytest.raises(Exception, match="an older checkpoint of the query was restored"):
        write(rows, topics, topic, **named, txnVersion="7")


def copy(spark: Any, topics: Topics, source: str, target: str, folder: Path) -> Any:
    """Copy a topic in an exactly-once stream, to the end of what is there."""
    reading = topics.options(subscribe=source, startingOffsets="earliest")
    writer = (
        spark.readStream.format(FORMAT)
        .options(**reading, maxOffsetsPerTrigger="20")
        .load()
        .select("value")
        .writeStream.format(FORMAT)
        .options(**topics.options(topic=target, deliveryGuarantee="exactly-once"))
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
    )
    return to_its_end(writer.start)


def forget_commits(folder: Path, first: int) -> None:
    """Make a checkpoint believe that batches from one on were planned, and never done."""
    for path in (folder / "commits").iterdir():
        name = path.name.removeprefix(".").removesuffix(".crc")
        if name.isdigit() and int(name) >= first:
            path.unlink()


@pytest.mark.requirement("PIPE-1")
def test_a_stream_that_repeats_its_last_micro_batch_duplicates_nothing(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("once-from", 2), topics.create("once-to", 2)
    topics.count(source, 0, 0, 30, NOW_MS)
    topics.count(source, 1, 30, ROWS, NOW_MS)
    copy(spark, topics, source, target, tmp_path)
    assert committed(topics, target) == list(range(ROWS))
    last = max(int(path.name) for path in (tmp_path / "offsets").iterdir() if path.name.isdigit())
    forget_commits(tmp_path, last)
    again = copy(spark, topics, source, target, tmp_path)
    assert again.recentProgress[0].batchId == last
    assert again.recentProgress[0].numInputRows > 0
    assert committed(topics, target) == list(range(ROWS))


def test_a_stream_with_an_older_checkpoint_reports_it(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("older-from"), topics.create("older-to")
    topics.count(source, 0, 0, ROWS, NOW_MS)
    copy(spark, topics, source, target, tmp_path)
    forget_commits(tmp_path, 1)
    for path in (tmp_path / "offsets").iterdir():
        name = path.name.removeprefix(".").removesuffix(".crc")
        if name.isdigit() and int(name) > 1:
            path.unlink()
    with pytest.raises(Exception, match="an older checkpoint of the query was restored"):
        copy(spark, topics, source, target, tmp_path)
    assert committed(topics, target) == list(range(ROWS))


def test_a_stream_is_identified_by_its_given_name(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("given-from"), topics.create("given-to")
    topics.count(source, 0, 0, ROWS, NOW_MS)
    reading = topics.options(subscribe=source, startingOffsets="earliest")
    writing = topics.options(topic=target, deliveryGuarantee="exactly-once", txnAppId="given")
    writer = (
        spark.readStream.format(FORMAT)
        .options(**reading)
        .load()
        .select("value")
        .writeStream.format(FORMAT)
        .options(**writing)
    )
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    to_its_end(writer.start)
    assert committed(topics, target) == list(range(ROWS))
    assert topics.admin.batches.decision("given", "topics", 1) is not None


@pytest.mark.requirement("PIPE-1")
def test_a_repeated_foreach_batch_function_duplicates_nothing(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("each-from"), topics.create("each-to")
    topics.count(source, 0, 0, ROWS, NOW_MS)
    place = Place(bootstrap=topics.bootstrap, folder=tmp_path, is_once=True)
    seen: list[int] = []

    def write(rows: Any, batch: int) -> None:
        seen.append(batch)
        write_topic(rows, place, target)
        if len(seen) == 1:
            raise ValueError("after the write, before Spark knows of it")

    def run() -> Any:
        rows = read_topic(spark, place, source, query="each").select("value")
        query = each_batch(rows, place, write, query="each")()
        query.awaitTermination()

    with pytest.raises(Exception, match="before Spark knows of it"):
        run()
    run()
    assert seen == [1, 1]
    assert committed(topics, target) == list(range(ROWS))


def test_a_stateful_stream_keeps_its_state_when_a_decided_micro_batch_is_repeated(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("state-from"), topics.create("state-to")
    reading = topics.options(subscribe=source, startingOffsets="earliest")
    writing = topics.options(topic=target, deliveryGuarantee="exactly-once")

    def run() -> Any:
        rows = spark.readStream.format(FORMAT).options(**reading).load().select("value")
        writer = rows.dropDuplicates(["value"]).writeStream.format(FORMAT).options(**writing)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        return to_its_end(writer.start)

    topics.count(source, 0, 0, ROWS, NOW_MS)
    run()
    forget_commits(tmp_path, 1)
    topics.count(source, 0, 0, ROWS, NOW_MS)  # all of them once more
    query = run()
    states = [
        json.loads(one.json)["stateOperators"][0]["numRowsTotal"] for one in query.recentProgress
    ]
    assert states[-1] == ROWS
    assert committed(topics, target) == list(range(ROWS))
