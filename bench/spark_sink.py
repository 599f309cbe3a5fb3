"""How fast does Spark write a topic?

1 M rows of 108 B from memory, `local[2]`, acks=all by idempotent producers into four partitions;
Spark's own connector writes the same rows to the same broker, in turns, if its JARs are there. The
best of several rounds counts. Prints one JSON line; needs the extra `spark`.
"""

import json
from typing import Any

from bench.serving import serving
from bench.spark_common import OFFICIAL, OURS, fill, formats, seconds, spark_session
from kafkaesque.testing.process import HOST

ROWS = 1_000_000
ROUNDS = 5


def write(rows: Any, form: str, bootstrap: str, topic: str) -> None:
    """Append all rows to a topic."""
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    rows.write.format(form).options(**options).mode("append").save()


def main() -> None:
    """Measure and print."""
    with serving() as broker, spark_session("bench-sink") as spark:
        bootstrap = f"{HOST}:{broker.port}"
        key = "lpad(string(id), 8, '0') as key"
        rows = spark.range(0, ROWS, 1, 2).selectExpr(key, "repeat(string(id % 10), 100) as value")
        rows.persist().count()
        best = dict.fromkeys(formats(), float("inf"))
        for number in range(ROUNDS):
            for form in best:
                topic = f"{form}-{number}"
                fill(bootstrap, topic, 0)
                taken = seconds(
                    lambda form=form, topic=topic: write(rows, form, bootstrap, topic)  # type: ignore[misc]
                )
                best[form] = min(best[form], taken)
    speeds = {form: round(ROWS / taken / 1e6, 3) for form, taken in best.items()}
    line = {"figure": "spark-sink", "measured": speeds[OURS], "unit": "M rows/s"}
    ratio = round(best[OFFICIAL] / best[OURS], 2) if OFFICIAL in best else None
    print(json.dumps({**line, "ratio": ratio, "official": speeds.get(OFFICIAL)}))


if __name__ == "__main__":
    main()
