"""Converts log lines of many sources to one form: in a topic, and in a table by day."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.spark.pipelines.blocks import (
    Job,
    Output,
    Place,
    dead_letters,
    each_batch,
    good,
    read_topic,
    with_reason,
    write_out,
    write_topic,
)
from kafkaesque.spark.pipelines.log_formats import line_of
from kafkaesque.spark.pipelines.logs_events import LogsSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FAULTS = {
    "there is no value": "value is null",
    "the format of the line is unknown": "event is null",
    "the time is not readable": "event.at is null",
}


def jobs(spark: "SparkSession", place: Place, settings: LogsSettings) -> list[Job]:
    """Prepare the one query; the topics must exist."""
    out = Output(topic=settings.lines_topic, key="host", table="lines", by=("day",))

    def write(rows: "DataFrame", batch: int) -> None:
        lines = good(rows)
        day = F.to_date(F.timestamp_millis("at"))
        write_out(lines.withColumn("day", day), place, out, batch)
        write_topic(dead_letters(rows), place, settings.dead_letter_topic)

    records = read_topic(spark, place, settings.topic, query="lines")
    return [each_batch(judged_lines(records), place, write, query="lines")]


def judged_lines(records: "DataFrame") -> "DataFrame":
    """Add `event`, the parsed line, and `reason`, its fault if any."""
    text, sender = F.col("value").cast("string"), F.col("key").cast("string")
    lines = records.withColumn("event", line_of(text, sender, F.col("timestamp")))
    return with_reason(lines, _FAULTS)
