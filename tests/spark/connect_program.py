"""A program that uses topics through Spark Connect and prints what it counted.

python -m tests.spark.connect_program BOOTSTRAP FOLDER
"""

import json
import os
import sys

from pyspark.sql import SparkSession

from kafkaesque.spark.pipelines.query_runner import run

ROWS = 200


def main() -> None:
    """Write, copy in a stream, and count."""
    bootstrap, folder = sys.argv[1], sys.argv[2]
    # Otherwise the server's workers run a Python without this package.
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    broker = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(ROWS).selectExpr("string(id) as key", "string(id) as value")
    rows.write.format("kafkaesque").options(**broker, topic="connect-in").mode("append").save()
    writer = (
        spark.readStream.format("kafkaesque")
        .options(**broker, subscribe="connect-in", startingOffsets="earliest")
        .load()
        .selectExpr("key", "value")
        .writeStream.format("kafkaesque")
        .options(**broker, topic="connect-out")
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
    )
    run([writer.start], lambda _: None, is_in_turn=True)
    found = spark.read.format("kafkaesque").options(**broker, subscribe="connect-out").load()
    print(json.dumps({"rows": found.select("value").distinct().count()}))  # noqa: T201 - its answer
    spark.stop()


if __name__ == "__main__":
    main()
