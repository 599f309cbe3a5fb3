"""Topics in Spark: a data source for batch and streaming queries, and pipelines made of it.

Needs the extra `spark`. Nothing of Spark is imported before `register` or `session` is called.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make `format("kafkaesque")` known to a session in which it was not found by itself."""
    from kafkaesque.spark.datasource import KafkaesqueSource

    spark.dataSource.register(KafkaesqueSource)
