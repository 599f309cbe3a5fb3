"""What Prometheus learns about the queries of a pipeline."""

from prometheus_client import CollectorRegistry, generate_latest

from kafkaesque.spark.pipelines.exporter import Exporter
from kafkaesque.spark.pipelines.query_runner import Fare


def test_each_query_has_its_numbers() -> None:
    exporter = Exporter()
    fare = Fare(
        name="q",
        batch=1,
        rows=2,
        rows_per_s=3.0,
        lag=4,
        state_rows=5,
        state_bytes=6,
        batch_ms=7,
    )
    exporter.tell([fare])
    registry = CollectorRegistry()
    registry.register(exporter)
    text = generate_latest(registry).decode()
    assert 'kafkaesque_pipeline_lag_offsets{query="q"} 4.0' in text
    assert 'kafkaesque_pipeline_batch_milliseconds{query="q"} 7.0' in text
