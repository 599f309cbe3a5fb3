"""What visitors do, as it happens: sessions, funnels, and counters by the minute.

    clicks ──> sessions ──> topic, table ──> funnels by the hour (table)
       ├─────> counters ──> topic
       └─────> dead letters ──> topic

A session ends when its visitor does nothing for a while. It is written once, when no earlier event
can arrive any more; counters are rewritten whenever they change.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.spark.pipelines.activity_events import (
    KINDS,
    SECONDS_OF_A_WINDOW,
    ActivitySettings,
    ActivityTimes,
)
from kafkaesque.spark.pipelines.blocks import (
    Job,
    Output,
    Place,
    Write,
    changes_out,
    dead_letters,
    each_batch,
    good,
    judged,
    read_topic,
    stream_to_topic,
    timed,
    write_out,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "user string, kind string, item string, at bigint"
_FAULTS = {
    "there is no user": "event.user is null or event.user = ''",
    "the kind is not known": f"event.kind is null or event.kind not in {KINDS}",
    "there is no time": "event.at is null or event.at <= 0",
}
_COUNTS = ("searches", "clicks", "carts", "buys")
_SESSION = ("user", "started_at", "ended_at", "events", *_COUNTS, "stage")


def jobs(spark: "SparkSession", place: Place, settings: ActivitySettings) -> list[Job]:
    """Prepare the three queries; the topics must exist."""

    def rows(query: str) -> "DataFrame":
        return judged(read_topic(spark, place, settings.topic, query=query), _SCHEMA, _FAULTS)

    def events(query: str) -> "DataFrame":
        return timed(good(rows(query)), settings.lateness_s)

    finished = sessions(events("sessions"), settings.times).select(*_SESSION)
    as_counters = Output(topic=settings.counters_topic, key="concat(started_at, '/', kind)")
    letters = dead_letters(rows("dead-letters"))
    return [
        each_batch(finished, place, _sessions_out(place, settings), query="sessions"),
        changes_out(counters(events("counters")), place, as_counters, query="counters"),
        stream_to_topic(letters, place, settings.dead_letter_topic, query="dead-letters"),
    ]


def sessions(events: "DataFrame", times: ActivityTimes) -> "DataFrame":
    """Return one row for each session; times are in milliseconds since 1970."""
    window = F.session_window("time", f"{times.gap_s} seconds")
    counts = [
        F.count_if(F.col("kind") == kind).alias(name)
        for kind, name in zip(KINDS, _COUNTS, strict=True)
    ]
    grouped = events.groupBy("user", window.alias("session")).agg(
        F.min("at").alias("started_at"),
        F.max("at").alias("ended_at"),
        F.count("*").alias("events"),
        *counts,
    )
    stage = F.when(F.col("buys") > 0, "buy").when(F.col("carts") > 0, "cart")
    stage = stage.when(F.col("clicks") > 0, "click").otherwise("search")
    return grouped.withColumn("stage", stage)


def counters(events: "DataFrame") -> "DataFrame":
    """Return how many events of each kind there were in each window."""
    window = F.window("time", f"{SECONDS_OF_A_WINDOW} seconds")
    counted = events.groupBy(window.alias("window"), "kind").count()
    started = F.unix_millis(F.col("window.start"))
    return counted.select(started.alias("started_at"), "kind", "count")


def funnel_increments(finished: "DataFrame") -> "DataFrame":
    """Return how many of these sessions reached each step, by the hour in which they started."""
    hour = F.date_trunc("hour", F.timestamp_millis("started_at"))
    reached = {
        "clicked": F.col("stage").isin("click", "cart", "buy"),
        "carted": F.col("stage").isin("cart", "buy"),
        "bought": F.col("stage") == "buy",
    }
    columns = [F.count_if(rule).alias(name) for name, rule in reached.items()]
    return finished.groupBy(hour.alias("hour")).agg(F.count("*").alias("sessions"), *columns)


def funnels(spark: "SparkSession", place: Place) -> "DataFrame":
    """Return the funnel of every hour so far, from the table."""
    increments = spark.read.parquet(str(place.table("funnels")))
    sums = [F.sum(name).alias(name) for name in ("sessions", "clicked", "carted", "bought")]
    return increments.groupBy("hour").agg(*sums).orderBy("hour")


def _sessions_out(place: Place, settings: ActivitySettings) -> Write:
    out = Output(topic=settings.sessions_topic, key="user", table="sessions")

    def write(finished: "DataFrame", batch: int) -> None:
        write_out(finished, place, out, batch)
        write_out(funnel_increments(finished), place, Output(table="funnels"), batch)

    return write
