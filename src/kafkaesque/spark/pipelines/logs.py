"""Log lines of many sources, brought into one form: into a topic, and into a table by day."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

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
    "the line is of no known format": "event is null",
    "the time cannot be read": "event.at is null",
}


def jobs(spark: "SparkSession", place: Place, settings: LogsSettings) -> list[Job]:
    """Prepare the one query; the topics must be there."""
    out = Output(topic=settings.lines_topic, key="host", table="lines", by=("day",))

    def write(rows: "DataFrame", batch: int) -> None:
        lines = good(rows)
        day = F.to_date(F.timestamp_millis("at"))
        write_out(lines.withColumn("day", day), place, out, batch)
        write_topic(dead_letters(rows), place, settings.dead_letter_topic)

    records = read_topic(spark, place, settings.topic, query="lines")
    return [each_batch(judged_lines(records), place, write, query="lines")]


def judged_lines(records: "DataFrame") -> "DataFrame":
    """Add `event`, what a record's line says, and `reason`, what is wrong with it."""
    text, sender = F.col("value").cast("string"), F.col("key").cast("string")
    lines = records.withColumn("event", line_of(text, sender, F.col("timestamp")))
    return with_reason(lines, _FAULTS)
