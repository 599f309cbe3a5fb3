"""The blocks of pipelines: read a topic, put bad rows aside, write a topic or a table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.client.admin import Admin
from kafkaesque.spark.once_sink import BATCH_PROPERTY, QUERY_PROPERTY
from kafkaesque.wire.messages.register_driver import RegisterDriverRequest

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

_FORMAT = "kafkaesque"
_ONCE = "exactly-once"
_COMMITTED = {"kafka.isolation.level": "read_committed"}
_BROKEN = "_broken"
"""The column in which Spark puts text that is not JSON, instead of failing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of a job that was not a stream."""

    name: str
    rows: int


Start: TypeAlias = Callable[[], "StreamingQuery"]
"""Starts one query."""

Job: TypeAlias = Callable[[], "StreamingQuery | Done"]
"""Starts one query, or does its work at once."""

Write: TypeAlias = Callable[["DataFrame", int], None]
"""Writes the rows of one micro-batch; gets its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The environment of a pipeline: its brokers, and the folder of its tables and checkpoints."""

    bootstrap: str
    folder: Path
    is_once: bool = False
    """Whether it ends once all existing records are read; otherwise it runs until it is stopped."""
    offsets_per_trigger_max: int = 200_000
    """The limit of a micro-batch, so that a long backlog does not become one batch."""

    def checkpoint(self, query: str) -> str:
        """Return where a query keeps its progress."""
        return str(self.folder / "checkpoints" / query)

    def table(self, name: str) -> Path:
        """Return the folder of a table."""
        return self.folder / "tables" / name

    def group(self, query: str) -> str:
        """Return the consumer group to which a query commits its progress."""
        return f"pipeline-{self.folder.name}-{query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where rows go: into a topic as JSON under a key, into a table, or both."""

    topic: str | None = None
    key: str = "null"
    """An SQL expression."""
    table: str | None = None
    by: tuple[str, ...] = ()
    """The columns by whose values the table is divided into folders."""


def read_topic(
    spark: "SparkSession", place: Place, topic: str, *, query: str, headers: bool = False
) -> "DataFrame":
    """Return a stream of all records of a topic, from the earliest, for the named query.

    The name is also part of a consumer group, so that the query's lag shows. Queries must not share
    a stream.
    """
    return (
        spark.readStream.format(_FORMAT)
        .option("kafka.bootstrap.servers", place.bootstrap)
        .option("kafka.group.id", place.group(query))
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(place.offsets_per_trigger_max))
        .option("includeHeaders", str(headers).lower())
        .options(**_COMMITTED)
        .load()
    )


def read_whole(
    spark: "SparkSession", place: Place, topic: str, options: Mapping[str, str] | None = None
) -> "DataFrame":
    """Return all records that a topic has now, or those that `options` select."""
    reader = spark.read.format(_FORMAT).option("kafka.bootstrap.servers", place.bootstrap)
    return reader.options(**{"subscribe": topic, **_COMMITTED, **(options or {})}).load()


def judged(records: "DataFrame", schema: str, faults: Mapping[str, str]) -> "DataFrame":
    """Read values as JSON: column `event` holds the fields, `reason` the first fault, if any.

    `faults` maps reasons to SQL conditions on the fields of `event`; they are checked in order,
    after the value itself.
    """
    text = F.col("value").cast("string")
    options = {"columnNameOfCorruptRecord": _BROKEN}
    event = F.from_json(text, f"{schema}, {_BROKEN} string", options)
    parsed = records.withColumn("event", event)
    no_json = f"event is null or event.{_BROKEN} is not null"
    shape = {"there is no value": "value is null", "the value is not a JSON object": no_json}
    assert not shape.keys() & faults.keys(), "each reason has one condition"
    return with_reason(parsed, {**shape, **faults})


def with_reason(frame: "DataFrame", faults: Mapping[str, str]) -> "DataFrame":
    """Add the column `reason`: the first fault whose condition a row meets, else null."""
    reason = F.lit(None).cast("string")
    for sentence, condition in reversed(list(faults.items())):
        reason = F.when(F.expr(condition), sentence).otherwise(reason)
    return frame.withColumn("reason", reason)


def good(frame: "DataFrame") -> "DataFrame":
    """Return the events of the rows without a fault."""
    return frame.where("reason is null").select("event.*").drop(_BROKEN)


def timed(events: "DataFrame", lateness_s: int) -> "DataFrame":
    """Add the event time `time` from `at`, in milliseconds; events later than that are dropped."""
    with_time = events.withColumn("time", F.timestamp_millis("at"))
    return with_time.withWatermark("time", f"{lateness_s} seconds")


def dead_letters(frame: "DataFrame") -> "DataFrame":
    """Return the rows with a fault as records: unchanged, with the reason in a header."""
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


def write_topic(
    frame: "DataFrame", place: Place, topic: str, options: Mapping[str, str] | None = None
) -> None:
    """Append the rows of one micro-batch, or of a batch query, to a topic.

    Within a micro-batch, call it only once per topic: a second write counts as a repetition and is
    skipped.
    """
    given = _sink_options(place, topic) | _micro_batch(frame, place, topic) | dict(options or {})
    frame.write.format(_FORMAT).options(**given).mode("append").save()


def write_table(frame: "DataFrame", path: Path, batch: int, by: Sequence[str] = ()) -> None:
    """Write the rows of one micro-batch to a table; a repetition replaces what it wrote before."""
    numbered = frame.withColumn("batch", F.lit(batch))
    writer = numbered.write.mode("overwrite").partitionBy(*by, "batch")
    writer.option("partitionOverwriteMode", "dynamic").parquet(str(path))


def write_out(frame: "DataFrame", place: Place, output: Output, batch: int) -> None:
    """Write the rows of one micro-batch to its output."""
    if output.table is not None:
        write_table(frame, place.table(output.table), batch, output.by)
    if output.topic is not None:
        write_topic(as_json(frame, F.expr(output.key), frame.columns), place, output.topic)


def stream_out(frame: "DataFrame", place: Place, output: Output, *, query: str) -> Start:
    """Prepare a query that writes each row once it is final."""
    return each_batch(frame, place, lambda rows, n: write_out(rows, place, output, n), query=query)


def changes_out(frame: "DataFrame", place: Place, output: Output, *, query: str) -> Start:
    """Prepare a query that writes each row whenever it changes."""

    def write(rows: "DataFrame", batch: int) -> None:
        write_out(rows, place, output, batch)

    return each_batch(frame, place, write, query=query, mode="update")


def stream_to_topic(frame: "DataFrame", place: Place, topic: str, *, query: str) -> Start:
    """Prepare a query that appends a stream of records to a topic."""
    writer = frame.writeStream.format(_FORMAT).options(**_sink_options(place, topic))
    return prepared(writer, place, query)


def each_batch(
    frame: "DataFrame", place: Place, write: Write, *, query: str, mode: str = "append"
) -> Start:
    """Prepare a query that passes each micro-batch to a function, which may use it several times.

    Micro-batches without rows are skipped: there is one at the start of every query.
    """

    def kept(rows: "DataFrame", batch: int) -> None:
        rows.persist()
        if not rows.isEmpty():
            write(rows, batch)
        rows.unpersist()

    return prepared(frame.writeStream.foreachBatch(kept).outputMode(mode), place, query)


def _sink_options(place: Place, topic: str) -> dict[str, str]:
    guarantee = _guarantee(place.bootstrap)
    bootstrap = {"kafka.bootstrap.servers": place.bootstrap}
    return {**bootstrap, "topic": topic, "deliveryGuarantee": guarantee}


@cache
def _guarantee(bootstrap: str) -> str:
    """Return the best delivery guarantee of these brokers."""
    with Admin(bootstrap) as admin:
        return _ONCE if admin.serves(RegisterDriverRequest) else "at-least-once"


def _micro_batch(frame: "DataFrame", place: Place, topic: str) -> dict[str, str]:
    """Return the options that identify a write within a micro-batch when it is repeated."""
    context = frame.sparkSession.sparkContext
    query, batch = (
        context.getLocalProperty(QUERY_PROPERTY),
        context.getLocalProperty(BATCH_PROPERTY),
    )
    if query is None or batch is None or _guarantee(place.bootstrap) != _ONCE:
        return {}
    return {"txnAppId": f"{query}-{topic}", "txnVersion": batch}


def prepared(writer: "DataStreamWriter", place: Place, query: str) -> Start:
    """Return a function that starts a query under its name, with its checkpoint."""
    named = writer.queryName(query).option("checkpointLocation", place.checkpoint(query))
    return named.trigger(availableNow=True).start if place.is_once else named.start
