"""Rebuilds a database's state, at any offset or time, from the log of its changes.

Changes of one row must be in one partition, as they are if its table and id are the key. The last
one before the chosen point counts, by its offset.
"""

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.pipelines.blocks import (
    Done,
    Job,
    Place,
    dead_letters,
    judged,
    read_whole,
    write_topic,
)
from kafkaesque.spark.pipelines.commitlog_events import CommitlogSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "op string, table string, id string, row string"
_FAULTS = {
    "the operation is not known": "event.op is null or event.op not in ('upsert', 'delete')",
    "there is no table": "event.table is null",
    "there is no id": "event.id is null",
    "there is no row": "event.op = 'upsert' and event.row is null",
}


def jobs(spark: "SparkSession", place: Place, settings: CommitlogSettings) -> list[Job]:
    """Prepare the one batch query; it rewrites the table `state`."""

    def rebuild() -> Done:
        rows = judged(changes(spark, place, settings), _SCHEMA, _FAULTS).persist()
        count = rows.count()
        write_topic(dead_letters(rows), place, settings.dead_letter_topic)
        path = str(place.table("state"))
        state(rows).write.mode("overwrite").partitionBy("table").parquet(path)
        rows.unpersist()
        return Done(name="rebuild", rows=count)

    return [rebuild]


def changes(spark: "SparkSession", place: Place, settings: CommitlogSettings) -> "DataFrame":
    """Return the records up to the chosen point; raises BadOption if there are two."""
    options: dict[str, str] = {}
    if settings.until_offsets and settings.until_ms:
        raise BadOption("until_offsets and until_ms contradict each other: give only one")
    if settings.until_ms:
        options["endingTimestamp"] = str(settings.until_ms)
    if settings.until_offsets:
        options["endingOffsets"] = json.dumps({settings.topic: _offsets(settings.until_offsets)})
    return read_whole(spark, place, settings.topic, options)


def state(rows: "DataFrame") -> "DataFrame":
    """Return the rows that exist after all changes: `table`, `id`, and `row` as JSON."""
    last = F.max_by(F.struct("event.op", "event.row"), "offset").alias("last")
    newest = rows.where("reason is null").groupBy("event.table", "event.id").agg(last)
    return newest.where("last.op = 'upsert'").select("table", "id", "last.row")


def _offsets(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadOption(f'until_offsets is {text!r}, but must look like {{"0":10}}') from error
