"""Lets Spark find `format("kafkaesque")`: it imports packages with this prefix."""

from kafkaesque.spark.datasource import KafkaesqueSource as DefaultSource

__all__ = ["DefaultSource"]
