"""Topics in Spark: a data source for batch and streaming queries, and pipelines built on it.

Needs the extra `spark`. Spark is not imported before `register` or `session` is called.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make `format("kafkaesque")` known to a session that did not find it automatically.

    If no Python is set for the workers, and they run on this machine, they use this one.
    """
    from pyspark.sql import SparkSession

    from kafkaesque.spark.datasource import KafkaesqueSource
    from kafkaesque.spark.session import python_of_workers

    if isinstance(spark, SparkSession) and "PYSPARK_PYTHON" not in os.environ:
        context = spark.sparkContext
        if context.master.startswith("local"):
            context.pythonExec = python_of_workers(context.master)
    spark.dataSource.register(KafkaesqueSource)
