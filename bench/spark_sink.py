"""How fast does Spark write a topic?

1 M rows of 108 B from memory, `local[2]`, acks=all by idempotent producers into four partitions,
and the same exactly once. Spark's own connector, which has no such mode, writes the same rows to
the same broker, in turns, if its JARs exist. The best of several rounds counts. Prints one JSON
line; needs the extra `spark`.
"""

import json
from typing import Any

from bench.serving import serving
from bench.spark_common import OFFICIAL, OURS, fill, formats, seconds, spark_session
from kafkaesque.testing.process import HOST

ROWS = 1_000_000
ROUNDS = 5
ONCE = "exactly-once"


def write(rows: Any, way: str, bootstrap: str, topic: str) -> None:
    """Append all rows to a topic, with a format or with ours exactly once."""
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    form = OURS if way == ONCE else way
    if way == ONCE:
        options["deliveryGuarantee"] = ONCE
    rows.write.format(form).options(**options).mode("append").save()


def main() -> None:
    """Measure and print."""
    with serving() as broker, spark_session("bench-sink") as spark:
        bootstrap = f"{HOST}:{broker.port}"
        key = "lpad(string(id), 8, '0') as key"
        rows = spark.range(0, ROWS, 1, 2).selectExpr(key, "repeat(string(id % 10), 100) as value")
        rows.persist().count()
        best = dict.fromkeys([*formats(), ONCE], float("inf"))
        for number in range(ROUNDS):
            for way in best:
                topic = f"{way}-{number}"
                fill(bootstrap, topic, 0)
                taken = seconds(
                    lambda way=way, topic=topic: write(rows, way, bootstrap, topic)  # type: ignore[misc]
                )
                best[way] = min(best[way], taken)
    speeds = {way: round(ROWS / taken / 1e6, 3) for way, taken in best.items()}
    line = {"figure": "spark-sink", "measured": speeds[OURS], "unit": "M rows/s"}
    ratio = round(best[OFFICIAL] / best[OURS], 2) if OFFICIAL in best else None
    beside = {"official": speeds.get(OFFICIAL), "once": speeds[ONCE]}
    print(json.dumps({**line, "ratio": ratio, **beside}))


if __name__ == "__main__":
    main()
