"""The reference page of the metrics, generated from their declarations."""

from kafkaesque.server.edge.counters import TIME_BOUNDS_S, Kind, Refusal
from kafkaesque.server.http.metric import Metric
from kafkaesque.server.http.metrics import METRICS, REQUEST_SECONDS, REQUEST_SECONDS_TEXT

_HEAD = """\
# Metrics

What `GET /metrics` on the broker's port returns for Prometheus. Generated from
`metrics.py`, `cluster_metrics.py` and `share_metrics.py` of `src/kafkaesque/server/http` by
`make docs`; do not edit.

`GET /health` beside it is for load balancers and readiness probes:

| answer | when |
|---|---|
| 200 `ok` | the broker serves clients and has no problems |
| 200, a line for each problem | `crowded`; the others: a part is missing |
| 503, a line for each problem | `disk-full`, or `no-majority`: the catalog has no leader |
| 503 and a sentence | it does not serve: it is catching up, is stopping, or has failed |

A problem that an election may fix shows after it has lasted five to ten seconds. Each is logged
once when it starts, as `problem kind=...` unless [an event](events.md) reported it, and once when
it is over; `kafkaesque doctor` says what to do. Do not let a supervisor restart brokers because of
a 503: a restart only delays a broker that waits for its cluster. Supervisors have their own pages:

| page | 200 `ok` | 503 |
|---|---|---|
| `/health/live` | while the process responds: it may catch up, lack a majority, or stop | never |
| `/health/ready` | the broker serves clients | when `/health` returns 503, with one sentence why |

At most `limits.metrics_series_max` topics, and as many partitions, have their own lines, the first
by name; the sums count all of them. As many share groups have their own lines, those with the most
records that are not done; the rest, and a group of that name, are summed under `other`.

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
        "Memory, processor time and descriptors of the process have Prometheus' usual\n"
        "names, `process_resident_memory_bytes` and so on.\n"
    )
    return _HEAD + "".join(rows) + tail
