"""Exports the numbers of a pipeline's queries to Prometheus."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric

from kafkaesque.spark.pipelines.query_runner import Fare

_HOST = "127.0.0.1"
_GAUGES: dict[str, tuple[str, Callable[[Fare], float]]] = {
    "rows": ("Rows read since the start.", lambda one: one.rows),
    "rows_per_second": ("Rows per second in the last micro-batch.", lambda one: one.rows_per_s),
    "lag_offsets": ("Offsets still to read.", lambda one: one.lag),
    "state_rows": ("Rows in the query's state.", lambda one: one.state_rows),
    "state_bytes": ("Memory of its state store.", lambda one: one.state_bytes),
    "batch_milliseconds": ("Time of the last micro-batch.", lambda one: one.batch_ms),
}


class Exporter:
    """Serves the latest numbers."""

    def __init__(self) -> None:
        self._fares: Sequence[Fare] = ()

    def tell(self, fares: Sequence[Fare]) -> None:
        """Remember the current numbers of the queries."""
        self._fares = list(fares)

    def collect(self) -> Iterable[Metric]:
        """Yield one gauge for each number, with a value for each query."""
        for name, (what, number) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"kafkaesque_pipeline_{name}", what, labels=["query"])
            for one in self._fares:
                gauge.add_metric([one.name], number(one))
            yield gauge

    def serve(self, port: int) -> None:
        """Serve on a local port until the process ends."""
        registry = CollectorRegistry()
        registry.register(self)
        start_http_server(port, _HOST, registry)
