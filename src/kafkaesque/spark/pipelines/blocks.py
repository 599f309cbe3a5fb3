"""The blocks that pipelines are built of: a topic in, bad rows aside, a topic or a table out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

_FORMAT = "kafkaesque"
_BROKEN = "_broken"
"""Where Spark puts a text that is no JSON, instead of saying so."""

Job: TypeAlias = Callable[[], "StreamingQuery"]
"""Starts one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a pipeline runs: its brokers, and the folder of its tables and checkpoints."""

    bootstrap: str
    folder: Path
    is_once: bool = False
    """Whether it ends when all that is there has been read; else it runs until it is stopped."""
    offsets_per_trigger_max: int = 200_000
    """What a micro-batch takes at most, so that a long backlog does not become one batch."""

    def checkpoint(self, query: str) -> str:
        """Return where a query keeps how far it came."""
        return str(self.folder / "checkpoints" / query)

    def table(self, name: str) -> Path:
        """Return where a table lies."""
        return self.folder / "tables" / name


def read_topic(spark: "SparkSession", place: Place, topic: str) -> "DataFrame":
    """Return a stream of all records of a topic, from the earliest on."""
    return (
        spark.readStream.format(_FORMAT)
        .option("kafka.bootstrap.servers", place.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(place.offsets_per_trigger_max))
        .load()
    )


def judged(records: "DataFrame", schema: str, faults: Mapping[str, "Column"]) -> "DataFrame":
    """Read values as JSON: column `event` is what they say, `reason` what is wrong, if anything.

    `faults` are tried in their order on the fields of `event`, after the value itself.
    """
    text = F.col("value").cast("string")
    options = {"columnNameOfCorruptRecord": _BROKEN}
    event = F.from_json(text, f"{schema}, {_BROKEN} string", options)
    parsed = records.withColumn("event", event)
    reason = F.when(F.col("value").isNull(), "there is no value")
    is_broken = F.col("event").isNull() | F.col(f"event.{_BROKEN}").isNotNull()
    reason = reason.when(is_broken, "the value is no JSON object")
    for sentence, fault in faults.items():
        reason = reason.when(fault, sentence)
    return parsed.withColumn("reason", reason)


def good(frame: "DataFrame") -> "DataFrame":
    """Return the events of the rows in which nothing is wrong."""
    return frame.where("reason is null").select("event.*").drop(_BROKEN)


def dead_letters(frame: "DataFrame") -> "DataFrame":
    """Return the rows that are wrong, as records: as they came, with the reason in a header."""
    headers = {
        "reason": F.col("reason"),
        "topic": F.col("topic"),
        "partition": F.col("partition").cast("string"),
        "offset": F.col("offset").cast("string"),
    }
    pairs = [
        F.struct(F.lit(name).alias("key"), text.cast("binary").alias("value"))
        for name, text in headers.items()
    ]
    return frame.where("reason is not null").select(
        "key", "value", F.array(*pairs).alias("headers")
    )


def as_json(frame: "DataFrame", key: "Column", columns: Sequence[str]) -> "DataFrame":
    """Return rows as records: a key, and the columns as JSON."""
    return frame.select(key.alias("key"), F.to_json(F.struct(*columns)).alias("value"))


def write_topic(frame: "DataFrame", place: Place, topic: str) -> None:
    """Append the rows of one micro-batch to a topic."""
    options = {"kafka.bootstrap.servers": place.bootstrap, "topic": topic}
    frame.write.format(_FORMAT).options(**options).mode("append").save()


def write_table(frame: "DataFrame", path: Path, batch: int) -> None:
    """Put the rows of one micro-batch into a table; repeated, it replaces what it wrote before."""
    frame.write.mode("overwrite").parquet(str(path / f"batch={batch}"))


def stream_to_topic(frame: "DataFrame", place: Place, topic: str, *, query: str) -> Job:
    """Prepare a query that appends a stream to a topic."""
    options = {"kafka.bootstrap.servers": place.bootstrap, "topic": topic}
    return prepared(frame.writeStream.format(_FORMAT).options(**options), place, query)


def changes_to_topic(frame: "DataFrame", place: Place, topic: str, *, query: str) -> Job:
    """Prepare a query that writes every row that changed to a topic.

    Spark lets sinks in Python only append, so each micro-batch is written by itself.
    """

    def write(changed: "DataFrame", _batch: int) -> None:
        write_topic(changed, place, topic)

    return prepared(frame.writeStream.foreachBatch(write).outputMode("update"), place, query)


def prepared(writer: "DataStreamWriter", place: Place, query: str) -> Job:
    """Return what starts a query under its name, with its checkpoint, to run on or only once."""
    named = writer.queryName(query).option("checkpointLocation", place.checkpoint(query))
    return named.trigger(availableNow=True).start if place.is_once else named.start
