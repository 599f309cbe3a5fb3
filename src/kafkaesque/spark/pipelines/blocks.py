"""The blocks that pipelines are built of: a topic in, bad rows aside, a topic or a table out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - everybody calls it so

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
"""Where Spark puts a text that is no JSON, instead of saying so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A job that was no stream and is over."""

    name: str
    rows: int


Start: TypeAlias = Callable[[], "StreamingQuery"]
"""Starts one query."""

Job: TypeAlias = Callable[[], "StreamingQuery | Done"]
"""Starts one query, or does one thing at once."""

Write: TypeAlias = Callable[["DataFrame", int], None]
"""Writes the rows of one micro-batch, whose number is given."""


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

    def group(self, query: str) -> str:
        """Return the consumer group that is told how far a query came."""
        return f"pipeline-{self.folder.name}-{query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where rows go: into a topic as JSON under a key, into a table, or both."""

    topic: str | None = None
    key: str = "null"
    """An expression in SQL."""
    table: str | None = None
    by: tuple[str, ...] = ()
    """The columns whose values make the table's folders."""


def read_topic(
    spark: "SparkSession", place: Place, topic: str, *, query: str, headers: bool = False
) -> "DataFrame":
    """Return a stream of all records of a topic, from the earliest on, for the query of this name.

    The name is that of a consumer group as well, so that the query's lag shows. No two queries may
    share a stream.
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
    """Return all records that a topic has now, or those that more options name."""
    reader = spark.read.format(_FORMAT).option("kafka.bootstrap.servers", place.bootstrap)
    return reader.options(**{"subscribe": topic, **_COMMITTED, **(options or {})}).load()


def judged(records: "DataFrame", schema: str, faults: Mapping[str, str]) -> "DataFrame":
    """Read values as JSON: column `event` is what they say, `reason` what is wrong, if anything.

    `faults` are conditions in SQL on the fields of `event`, by the reason that they are; they are
    tried in their order after the value itself.
    """
    text = F.col("value").cast("string")
    options = {"columnNameOfCorruptRecord": _BROKEN}
    event = F.from_json(text, f"{schema}, {_BROKEN} string", options)
    parsed = records.withColumn("event", event)
    no_json = f"event is null or event.{_BROKEN} is not null"
    shape = {"there is no value": "value is null", "the value is no JSON object": no_json}
    assert not shape.keys() & faults.keys(), "each reason has one condition"
    return with_reason(parsed, {**shape, **faults})


def with_reason(frame: "DataFrame", faults: Mapping[str, str]) -> "DataFrame":
    """Add the column `reason`: the first fault whose condition a row meets, null if none."""
    reason = F.lit(None).cast("string")
    for sentence, condition in reversed(list(faults.items())):
        reason = F.when(F.expr(condition), sentence).otherwise(reason)
    return frame.withColumn("reason", reason)


def good(frame: "DataFrame") -> "DataFrame":
    """Return the events of the rows in which nothing is wrong."""
    return frame.where("reason is null").select("event.*").drop(_BROKEN)


def timed(events: "DataFrame", lateness_s: int) -> "DataFrame":
    """Add the event time `time` from `at`, in milliseconds; events later than that are left out."""
    with_time = events.withColumn("time", F.timestamp_millis("at"))
    return with_time.withWatermark("time", f"{lateness_s} seconds")


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


def write_topic(
    frame: "DataFrame", place: Place, topic: str, options: Mapping[str, str] | None = None
) -> None:
    """Append the rows of one micro-batch, or of a batch query, to a topic.

    Within a micro-batch only once for each topic: what is written a second time is taken for a
    repetition, and passed over.
    """
    given = _sink_options(place, topic) | _micro_batch(frame, place, topic) | dict(options or {})
    frame.write.format(_FORMAT).options(**given).mode("append").save()


def write_table(frame: "DataFrame", path: Path, batch: int, by: Sequence[str] = ()) -> None:
    """Put the rows of one micro-batch into a table; repeated, it replaces what it wrote before."""
    numbered = frame.withColumn("batch", F.lit(batch))
    writer = numbered.write.mode("overwrite").partitionBy(*by, "batch")
    writer.option("partitionOverwriteMode", "dynamic").parquet(str(path))


def write_out(frame: "DataFrame", place: Place, output: Output, batch: int) -> None:
    """Put the rows of one micro-batch where they go."""
    if output.table is not None:
        write_table(frame, place.table(output.table), batch, output.by)
    if output.topic is not None:
        write_topic(as_json(frame, F.expr(output.key), frame.columns), place, output.topic)


def stream_out(frame: "DataFrame", place: Place, output: Output, *, query: str) -> Start:
    """Prepare a query that puts each row where it goes, once it is final."""
    return each_batch(frame, place, lambda rows, n: write_out(rows, place, output, n), query=query)


def changes_out(frame: "DataFrame", place: Place, output: Output, *, query: str) -> Start:
    """Prepare a query that puts each row where it goes whenever it changes."""

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
    """Prepare a query that gives each micro-batch to a function, which may use it several times.

    Those without rows are passed over: there is one at the start of every query.
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
    """Return the best that these brokers have."""
    with Admin(bootstrap) as admin:
        return _ONCE if admin.serves(RegisterDriverRequest) else "at-least-once"


def _micro_batch(frame: "DataFrame", place: Place, topic: str) -> dict[str, str]:
    """Return what a write within a micro-batch is known by when it is repeated."""
    context = frame.sparkSession.sparkContext
    query, batch = (
        context.getLocalProperty(QUERY_PROPERTY),
        context.getLocalProperty(BATCH_PROPERTY),
    )
    if query is None or batch is None or _guarantee(place.bootstrap) != _ONCE:
        return {}
    return {"txnAppId": f"{query}-{topic}", "txnVersion": batch}


def prepared(writer: "DataStreamWriter", place: Place, query: str) -> Start:
    """Return what starts a query under its name, with its checkpoint, to run on or only once."""
    named = writer.queryName(query).option("checkpointLocation", place.checkpoint(query))
    return named.trigger(availableNow=True).start if place.is_once else named.start
