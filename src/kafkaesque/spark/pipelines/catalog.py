"""Every pipeline by its name; modules that need Spark are imported only to run one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafkaesque.spark.pipelines import (
    activity_events,
    archive_settings,
    commitlog_events,
    enrich_events,
    logs_events,
    metrics_events,
    suggestions_events,
)
from kafkaesque.spark.pipelines.messages import Message
from kafkaesque.spark.pipelines.settings import PipelineSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One pipeline: its summary, its settings, its test data, and its module."""

    name: str
    summary: str
    settings: type[PipelineSettings]
    generate: Callable[[int, int, int], Iterator[Message[Any]]] | None
    """Takes seed, count and first time in milliseconds; None if the pipeline reads no topic."""

    @property
    def topic(self) -> str:
        """The topic that it reads by default."""
        return self.settings().topic

    @property
    def module(self) -> str:
        """The module with its function `jobs`."""
        return f"kafkaesque.spark.pipelines.{self.name}"


PIPELINES: Mapping[str, Pipeline] = {
    one.name: one
    for one in (
        Pipeline(
            name="activity",
            summary="clicks and searches to sessions, funnels and counters by the minute",
            settings=activity_events.ActivitySettings,
            generate=activity_events.generate,
        ),
        Pipeline(
            name="metrics",
            summary="services' metrics to count, sum, extremes and percentiles by window",
            settings=metrics_events.MetricsSettings,
            generate=metrics_events.generate,
        ),
        Pipeline(
            name="logs",
            summary="lines of web servers, syslog and JSON to one form, by day",
            settings=logs_events.LogsSettings,
            generate=logs_events.generate,
        ),
        Pipeline(
            name="enrich",
            summary="orders with their products from a compacted topic, and with their payments",
            settings=enrich_events.EnrichSettings,
            generate=enrich_events.generate,
        ),
        Pipeline(
            name="commitlog",
            summary="a database's changes to its tables, as they were at any offset or time",
            settings=commitlog_events.CommitlogSettings,
            generate=commitlog_events.generate,
        ),
        Pipeline(
            name="suggestions",
            summary="products that are seen together, as a stream; --set mode=batch starts afresh",
            settings=suggestions_events.SuggestionsSettings,
            generate=suggestions_events.generate,
        ),
        Pipeline(
            name="archive",
            summary="a topic to Parquet or Delta by day, unchanged",
            settings=archive_settings.ArchiveSettings,
            generate=activity_events.generate,
        ),
        Pipeline(
            name="replay",
            summary="an archive back into a topic: keys, headers, timestamps and order kept",
            settings=archive_settings.ReplaySettings,
            generate=None,
        ),
    )
}
"""All pipelines, in the order of the list."""
