"""What a broker tells Prometheus: every metric is declared here once, read when it is asked for.

Names end in their unit, and in `_total` where they only grow. How many topics and partitions have
lines of their own is limited; the sums always count them all.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from kafkaesque.broker.partition import Partition
from kafkaesque.server.cluster_metrics import CLUSTER_METRICS
from kafkaesque.server.counters import TIME_BOUNDS_S
from kafkaesque.server.edge import Edge
from kafkaesque.server.http import Page
from kafkaesque.server.metric import Metric, Samples, one
from kafkaesque.wire.apis import APIS

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

REQUEST_SECONDS = "kafkaesque_request_seconds"
REQUEST_SECONDS_TEXT = "From the last byte of a request to its answer, waiting included."


def _api_name(key: int) -> str:
    found = APIS.get(key)
    return str(key) if found is None else found.api.name


def _by_topic(edge: Edge, read: Callable[[Sequence[int]], float], field: str) -> Samples:
    """Read a field of every partition and put it together for each topic."""
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
        text="Requests that were answered.",
        labels=("api",),
        read=lambda edge: [
            ((_api_name(key),), one.requests) for key, one in sorted(edge.counters.apis.items())
        ],
    ),
    Metric(
        name="kafkaesque_request_errors_total",
        text="Requests that could not be answered because of a mistake of the broker's.",
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
        text="Open connections, by what they turned out to be.",
        labels=("kind",),
        read=lambda edge: [((k,), n) for k, n in sorted(edge.counters.open.items())],
    ),
    Metric(
        name="kafkaesque_connections_accepted_total",
        text="Connections that were let in; each counts as new and then as what it became.",
        labels=("kind",),
        read=lambda edge: [((k,), n) for k, n in sorted(edge.counters.accepted.items())],
    ),
    Metric(
        name="kafkaesque_connections_refused_total",
        text="Connections that the broker closed, by the limit or the rule that they broke.",
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
        text="Bytes of answers that clients asked for and do not read.",
        read=lambda edge: one(edge.untaken.held_bytes),
    ),
    Metric(
        name="kafkaesque_connections_waiting",
        text="Connections that are not read from because too many bytes are in flight.",
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
        text="Offsets from the first kept to the high watermark, all partitions of a topic.",
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
        text="The first offset that consumers of a partition cannot read yet.",
        labels=("topic", "partition"),
        read=_high_watermarks,
    ),
    Metric(
        name="kafkaesque_sync_rounds_total",
        text="Rounds of syncing; each makes everything durable that was written before it.",
        read=lambda edge: one(edge.broker.sync_rounds[0]),
    ),
    Metric(
        name="kafkaesque_sync_seconds_total",
        text="The time that rounds of syncing took.",
        read=lambda edge: one(edge.broker.sync_rounds[1] / 1000),
    ),
    *CLUSTER_METRICS,
)


class _Collector:
    """Reads everything when Prometheus asks."""

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
    """Return everything that can be scraped, the process's own memory and time included.

    The library is imported here and not above: it takes a tenth of a second, and a broker that
    nobody scrapes starts without it.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(edge))
    ProcessCollector(registry=registry)
    return Page(content=generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)
