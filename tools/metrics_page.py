"""The reference page of the metrics, made from their declarations."""

from kafkaesque.server.counters import TIME_BOUNDS_S, Kind, Refusal
from kafkaesque.server.metric import Metric
from kafkaesque.server.metrics import METRICS, REQUEST_SECONDS, REQUEST_SECONDS_TEXT

_HEAD = """\
# Metrics

What `GET /metrics` on the broker's port tells Prometheus. Generated from
`src/kafkaesque/server/metrics.py` and `cluster_metrics.py` by `make docs`; do not edit.

`GET /health` beside it is for load balancers and for readiness probes:

| answer | when |
|---|---|
| 200 `ok` | the broker serves, and finds nothing wrong |
| 200, a line for each problem | `crowded`; the others: a part is missing |
| 503, a line for each problem | `disk-full`, or `no-majority`: nobody leads the catalog |
| 503 and a sentence | it does not serve: it catches up, stops, or has failed |

A problem that an election cures shows when it has lasted five to ten seconds. Each is logged once
when it begins, as `problem kind=...`, and once when it is over; `kafkaesque doctor` tells what to
do. Let no supervisor restart brokers because of a 503: one that waits for its cluster only loses
time by it.

At most `limits.metrics_series_max` topics, and as many partitions, have lines of their own, the
first by name; the sums count all of them.

| metric | kind | labels | what |
|---|---|---|---|
"""


def _row(name: str, kind: str, labels: tuple[str, ...], text: str) -> str:
    shown = ", ".join(f"`{label}`" for label in labels) or "none"
    return f"| `{name}` | {kind} | {shown} | {text} |\n"


def _metric(metric: Metric) -> str:
    kind = "counter" if metric.is_counter else "gauge"
    return _row(metric.name, kind, metric.labels, metric.text)


def render() -> str:
    """Return the page."""
    rows = [_metric(metric) for metric in METRICS]
    rows.append(_row(REQUEST_SECONDS, "histogram", ("api",), REQUEST_SECONDS_TEXT))
    bounds = ", ".join(map(str, TIME_BOUNDS_S))
    kinds = ", ".join(f"`{kind}`" for kind in Kind)
    reasons = ", ".join(f"`{reason}`" for reason in Refusal)
    tail = (
        f"\nThe buckets of the histogram end at {bounds} seconds.\n\n"
        f"- `kind` is one of {kinds}.\n"
        f"- `reason` is one of {reasons}.\n\n"
        "Memory, processor time and descriptors of the process come under Prometheus' usual\n"
        "names, `process_resident_memory_bytes` and so on.\n"
    )
    return _HEAD + "".join(rows) + tail
