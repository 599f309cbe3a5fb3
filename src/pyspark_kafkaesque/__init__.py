"""Lets Spark find `format("kafkaesque")` by itself: it looks for packages with this prefix."""

from kafkaesque.spark.datasource import KafkaesqueSource as DefaultSource

__all__ = ["DefaultSource"]
