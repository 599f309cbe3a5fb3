"""Aggregates services' metrics in windows: count, sum, extremes and percentiles, when over."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from kafkaesque.spark.pipelines.blocks import (
    Job,
    Output,
    Place,
    dead_letters,
    good,
    judged,
    read_topic,
    stream_out,
    stream_to_topic,
    timed,
)
from kafkaesque.spark.pipelines.metrics_events import MetricsSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "service string, host string, metric string, value double, at bigint"
_FAULTS = {
    "there is no service": "event.service is null or event.service = ''",
    "there is no metric": "event.metric is null or event.metric = ''",
    "there is no number": "event.value is null or isnan(event.value)",
    "there is no time": "event.at is null or event.at <= 0",
}
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_ACCURACY = 10_000
"""Percentiles are exact up to about half this many samples per window, and close beyond."""


def jobs(spark: "SparkSession", place: Place, settings: MetricsSettings) -> list[Job]:
    """Prepare the two queries; the topics must exist."""

    def rows(query: str) -> "DataFrame":
        return judged(read_topic(spark, place, settings.topic, query=query), _SCHEMA, _FAULTS)

    samples = timed(good(rows("windows")), settings.lateness_s)
    key = "concat_ws('/', service, metric, started_at)"
    out = Output(topic=settings.windows_topic, key=key, table="windows")
    letters = dead_letters(rows("dead-letters"))
    return [
        stream_out(windows(samples, settings.window_s), place, out, query="windows"),
        stream_to_topic(letters, place, settings.dead_letter_topic, query="dead-letters"),
    ]


def windows(samples: "DataFrame", seconds: int) -> "DataFrame":
    """Return the aggregates of each service and metric in each window."""
    window = F.window("time", f"{seconds} seconds").alias("window")
    shares = [
        F.percentile_approx("value", share, _ACCURACY).alias(name)
        for name, share in _SHARES.items()
    ]
    sums = [F.count("*").alias("count"), F.sum("value").alias("sum")]
    extremes = [F.min("value").alias("min"), F.max("value").alias("max")]
    grouped = samples.groupBy("service", "metric", window).agg(*sums, *extremes, *shares)
    started_at = F.unix_millis(F.col("window.start")).alias("started_at")
    return grouped.select("service", "metric", started_at, *grouped.columns[3:])
