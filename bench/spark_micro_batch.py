"""How much longer does a micro-batch take that reads a topic than one of Spark's `rate` source?

100 rows in each micro-batch, into Spark's no-op sink, `local[2]`. The median of the micro-batches
counts, without the first ones of each query. Spark's own connector is also measured if its JARs
exist. Prints one JSON line; needs the extra `spark`.
"""

import json
import statistics
import tempfile
import time
from typing import Any

from bench.serving import serving
from bench.spark_common import OFFICIAL, OURS, fill, formats, spark_session
from kafkaesque.testing.process import HOST

ROWS = 100
BATCHES = 50
WARM_UP = 10
SECONDS_MAX = 300


def batch_ms(spark: Any, reader: Any) -> float:
    """Return the median time of a query's micro-batches."""
    with tempfile.TemporaryDirectory() as folder:
        writer = reader.load().writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.start()
        deadline = time.monotonic() + SECONDS_MAX
        while (query.lastProgress is None) or query.lastProgress.batchId < BATCHES:
            assert time.monotonic() < deadline, "the query goes on"
            time.sleep(0.5)
        found = [float(p.durationMs["triggerExecution"]) for p in query.recentProgress]
        query.stop()
    return statistics.median(found[WARM_UP:BATCHES])


def main() -> None:
    """Measure and print."""
    with serving() as broker, spark_session("bench-micro-batch") as spark:
        bootstrap = f"{HOST}:{broker.port}"
        fill(bootstrap, "rows", ROWS * BATCHES * 2, per_batch=ROWS)
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", str(ROWS))
        found = {"rate": batch_ms(spark, rate)}
        for form in formats():
            reader = spark.readStream.format(form).option("kafka.bootstrap.servers", bootstrap)
            reader = reader.option("subscribe", "rows").option("startingOffsets", "earliest")
            found[form] = batch_ms(spark, reader.option("maxOffsetsPerTrigger", str(ROWS)))
    line = {"figure": "spark-micro-batch", "measured": round(found[OURS] - found["rate"], 1)}
    official = round(found[OFFICIAL] - found["rate"], 1) if OFFICIAL in found else None
    more = {"rate_ms": found["rate"], "ours_ms": found[OURS], "official": official}
    print(json.dumps({**line, "unit": "ms more than rate", "ratio": None, **more}))


if __name__ == "__main__":
    main()
