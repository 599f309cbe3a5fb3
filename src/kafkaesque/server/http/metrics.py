"""A broker's Prometheus metrics: each is declared here once and read when scraped.

Names end in their unit, and in `_total` if they only grow. The number of topics and partitions with
their own lines is limited; the sums always count them all.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.events import EVENTS
from kafkaesque.server.edge.counters import TIME_BOUNDS_S
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.http.cluster_metrics import CLUSTER_METRICS
from kafkaesque.server.http.http import Page
from kafkaesque.server.http.metric import Metric, Samples, one
from kafkaesque.server.http.share_metrics import SHARE_METRICS
from kafkaesque.wire.apis import APIS

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

REQUEST_SECONDS = "kafkaesque_request_seconds"
REQUEST_SECONDS_TEXT = "Time from the last byte of a request to its response, waits included."


def _api_name(key: int) -> str:
    found = APIS.get(key)
    return str(key) if found is None else found.api.name


def _by_topic(edge: Edge, read: Callable[[Sequence[int]], float], field: str) -> Samples:
    """Aggregate a field of all partitions by topic."""
    topics = sorted(edge.broker.topics.open_partitions.items())
    for name, partitions in islice(topics, edge.limits.metrics_series_max):
        yield (name,), read([getattr(one, field) for one in partitions])


def _high_watermarks(edge: Edge) -> Samples:
    topics = edge.broker.topics
    every = (
        ((name, str(index)), float(slot.high_watermark))
        for name in topics.names
        for index, slot in enumerate(topics.slots(name))
        if isinstance(slot, Partition)
    )
    return islice(every, edge.limits.metrics_series_max)


def _count_partitions(edge: Edge) -> int:
    return sum(map(len, edge.broker.topics.open_partitions.values()))


def _log_bytes(edge: Edge) -> int:
    partitions = edge.broker.topics.open_partitions.values()
    return sum(each.size_bytes for some in partitions for each in some)


METRICS: tuple[Metric, ...] = (
    Metric(
        name="kafkaesque_requests_total",
        text="Answered requests.",
        labels=("api",),
        read=lambda edge: [
            ((_api_name(key),), one.requests) for key, one in sorted(edge.counters.apis.items())
        ],
    ),
    Metric(
        name="kafkaesque_request_errors_total",
        text="Requests that failed because of an internal error.",
        labels=("api",),
        read=lambda edge: [
            ((_api_name(key),), one.errors) for key, one in sorted(edge.counters.apis.items())
        ],
    ),
    Metric(
        name="kafkaesque_received_bytes_total",
        text="Bytes received from clients.",
        read=lambda edge: one(edge.counters.received_bytes),
    ),
    Metric(
        name="kafkaesque_sent_bytes_total",
        text="Bytes sent to Kafka and HTTP clients.",
        read=lambda edge: one(edge.counters.sent_bytes),
    ),
    Metric(
        name="kafkaesque_connections",
        text="Open connections by kind.",
        labels=("kind",),
        read=lambda edge: [((k,), n) for k, n in sorted(edge.counters.open.items())],
    ),
    Metric(
        name="kafkaesque_connections_accepted_total",
        text="Accepted connections; each counts as new and then under its kind.",
        labels=("kind",),
        read=lambda edge: [((k,), n) for k, n in sorted(edge.counters.accepted.items())],
    ),
    Metric(
        name="kafkaesque_connections_refused_total",
        text="Connections that the broker closed, by the limit or rule that they broke.",
        labels=("reason",),
        read=lambda edge: [((r,), n) for r, n in sorted(edge.counters.refused.items())],
    ),
    Metric(
        name="kafkaesque_inflight_bytes",
        text="Bytes of requests received and not yet answered.",
        read=lambda edge: one(edge.budget.held_bytes),
    ),
    Metric(
        name="kafkaesque_untaken_bytes",
        text="Bytes of responses that clients have not read yet.",
        read=lambda edge: one(edge.untaken.held_bytes),
    ),
    Metric(
        name="kafkaesque_connections_waiting",
        text="Connections whose reads are paused because too many bytes are in flight.",
        read=lambda edge: one(edge.budget.waiting),
    ),
    Metric(
        name="kafkaesque_topics",
        text="Topics that can be used.",
        read=lambda edge: one(len(edge.broker.topics.open_partitions)),
    ),
    Metric(
        name="kafkaesque_partitions",
        text="Partitions that can be used.",
        read=lambda edge: one(_count_partitions(edge)),
    ),
    Metric(
        name="kafkaesque_log_bytes",
        text="Bytes of the segments of all partitions.",
        read=lambda edge: one(_log_bytes(edge)),
    ),
    Metric(
        name="kafkaesque_topic_log_bytes",
        text="Bytes of the segments of a topic.",
        labels=("topic",),
        read=lambda edge: _by_topic(edge, sum, "size_bytes"),
    ),
    Metric(
        name="kafkaesque_topic_records",
        text="Offsets from the first kept to the high watermark, over all partitions of a topic.",
        labels=("topic",),
        read=lambda edge: (
            ((name,), sum(one.high_watermark - one.first_offset for one in partitions))
            for name, partitions in islice(
                sorted(edge.broker.topics.open_partitions.items()), edge.limits.metrics_series_max
            )
        ),
    ),
    Metric(
        name="kafkaesque_high_watermark",
        text="The first offset of a partition that consumers cannot read yet.",
        labels=("topic", "partition"),
        read=_high_watermarks,
    ),
    Metric(
        name="kafkaesque_sync_rounds_total",
        text="Sync rounds; each makes everything written before it durable.",
        read=lambda edge: one(edge.broker.sync_rounds[0]),
    ),
    Metric(
        name="kafkaesque_sync_seconds_total",
        text="Total time of sync rounds.",
        read=lambda edge: one(edge.broker.sync_rounds[1] / 1000),
    ),
    Metric(
        name="kafkaesque_events_total",
        text="Count of each event, including those without a log line.",
        labels=("event",),
        read=lambda edge: (((name,), edge.event_counts.get(name, 0)) for name in EVENTS),
    ),
    *CLUSTER_METRICS,
    *SHARE_METRICS,
)


class _Collector:
    """Reads all metrics when Prometheus scrapes."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    def collect(self) -> "Iterator[Family]":
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        for metric in METRICS:
            make = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            family = make(metric.name, metric.text, labels=metric.labels)
            for labels, value in metric.read(self._edge):
                family.add_metric(labels, value)
            yield family
        times = HistogramMetricFamily(REQUEST_SECONDS, REQUEST_SECONDS_TEXT, labels=("api",))
        bounds = [*map(str, TIME_BOUNDS_S), "+Inf"]
        for key, counter in sorted(self._edge.counters.apis.items()):
            buckets = list(zip(bounds, accumulate(counter.buckets), strict=True))
            times.add_metric((_api_name(key),), buckets, counter.seconds)
        yield times


def exposition(edge: Edge) -> Page:
    """Return all metrics, including the process's own memory and time.

    The library is imported here because it takes a tenth of a second; a broker that is never
    scraped starts without it.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(edge))
    ProcessCollector(registry=registry)
    return Page(content=generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)
