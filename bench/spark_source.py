"""How fast does Spark read a topic, and is its memory bounded?

2 M records of 118 B in four partitions, `local[2]`, into Spark's no-op sink; Spark's own connector
reads the same topic from the same broker, in turns, if its JARs exist. The best of several rounds
counts. Then 20 M records are read, and the peak memory of Spark's processes is compared with their
peak for 2 M. `ROWS_MILLIONS` sets another number than 20. Prints JSON lines; needs the extra
`spark`.
"""

import json
import os
import threading
from collections.abc import Callable
from typing import Any

from bench.serving import serving
from bench.spark_common import OFFICIAL, OURS, fill, formats, resident_bytes, seconds, spark_session
from kafkaesque.testing.process import HOST

ROWS = 2_000_000
ROUNDS = 5
MANY_ROWS = int(os.environ.get("ROWS_MILLIONS", "20")) * 1_000_000
LOOK_SECONDS = 0.5


def read(spark: Any, form: str, bootstrap: str, topic: str) -> None:
    """Read a whole topic and discard it."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    spark.read.format(form).options(**options).load().write.format("noop").mode("overwrite").save()


def memory_of(work: Callable[[], object]) -> list[int]:
    """Return memory samples taken at regular times while something runs."""
    done, found = threading.Event(), [resident_bytes()]

    def look() -> None:
        while not done.wait(LOOK_SECONDS):
            found.append(resident_bytes())

    watcher = threading.Thread(target=look)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return found


def main() -> None:
    """Measure and print."""
    with serving() as broker, spark_session("bench-source") as spark:
        bootstrap = f"{HOST}:{broker.port}"
        fill(bootstrap, "rows", ROWS)
        best = dict.fromkeys(formats(), float("inf"))
        for _ in range(ROUNDS):
            for form in best:
                taken = seconds(lambda form=form: read(spark, form, bootstrap, "rows"))  # type: ignore[misc]
                best[form] = min(best[form], taken)
        speeds = {form: round(ROWS / taken / 1e6, 3) for form, taken in best.items()}
        line = {"figure": "spark-source", "measured": speeds[OURS], "unit": "M rows/s"}
        ratio = round(best[OFFICIAL] / best[OURS], 2) if OFFICIAL in best else None
        print(json.dumps({**line, "ratio": ratio, "official": speeds.get(OFFICIAL)}), flush=True)

        few = memory_of(lambda: read(spark, OURS, bootstrap, "rows"))
        fill(bootstrap, "many-rows", MANY_ROWS)
        many = memory_of(lambda: read(spark, OURS, bootstrap, "many-rows"))
        step = max(1, len(many) // 10)
        line = {"figure": "spark-memory", "measured": round(max(many) / max(few), 2)}
        more = {"rows": MANY_ROWS, "MB": [size >> 20 for size in many[::step]]}
        print(json.dumps({**line, "unit": "times the memory", "ratio": None, **more}))


if __name__ == "__main__":
    main()
