"""A program with its own session, run by a Python environment that is not on the path.

python plain_program.py BOOTSTRAP TOPIC

Prints how many records the topic has.
"""

import sys

from pyspark.sql import SparkSession

import kafkaesque.spark

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def main() -> None:
    """Count the records of a topic."""
    bootstrap, topic = sys.argv[1:]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for key, value in LOCAL.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    kafkaesque.spark.register(spark)
    reader = spark.read.format("kafkaesque").option("kafka.bootstrap.servers", bootstrap)
    print(reader.option("subscribe", topic).load().count())  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
