"""A program that uses Spark's own Kafka connector against our broker and prints what it counted.

    python -m tests.spark.official_program BOOTSTRAP FOLDER

A batch query writes, a batch query reads, and a stream copies one topic into another.
"""

import json
import sys

from kafkaesque.spark.session import session
from tools.connector_jars import jars

ROWS = 1_000


def main() -> None:
    """Write, read and copy."""
    bootstrap, folder = sys.argv[1], sys.argv[2]
    settings = {
        "spark.jars": ",".join(str(path) for path in jars()),
        "spark.ui.showConsoleProgress": "false",
    }
    spark = session("official", settings=settings)
    spark.sparkContext.setLogLevel("OFF")
    broker = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(ROWS).selectExpr("string(id) as key", "string(id * 2) as value")
    rows.write.format("kafka").options(**broker, topic="official-in").save()

    def distinct(form: str, topic: str) -> int:
        reader = spark.read.format(form).options(**broker, subscribe=topic)
        return int(reader.load().select("key", "value").distinct().count())

    query = (
        spark.readStream.format("kafka")
        .options(**broker, subscribe="official-in", startingOffsets="earliest")
        .load()
        .selectExpr("key", "value")
        .writeStream.format("kafka")
        .options(**broker, topic="official-out")
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = {
        "batch": distinct("kafka", "official-in"),
        "stream": distinct("kafka", "official-out"),
        "ours": distinct("kafkaesque", "official-out"),
    }
    print(json.dumps(found))  # noqa: T201 - its answer
    spark.stop()


if __name__ == "__main__":
    main()
