"""A program that runs a batch and a stream on a cluster and prints the result as JSON.

python -m tests.spark.cluster_program MASTER BOOTSTRAP FOLDER

In the stream one executor is killed with kill -9, once.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkaesque.spark.pipelines.blocks import Place, read_topic, read_whole, stream_to_topic
from kafkaesque.spark.pipelines.query_runner import run
from kafkaesque.spark.session import session

SOURCE = "cluster-source"
TARGET = "cluster-target"


def executor_pid() -> int:
    """Return the JVM above this worker: its parent is Spark's daemon, whose parent is the JVM."""
    status = Path(f"/proc/{os.getppid()}/status").read_text().splitlines()
    parent = next(line for line in status if line.startswith("PPid:"))
    return int(parent.split()[1])


def main() -> None:
    """Count the executors that read, then copy the topic while one of them dies."""
    master, bootstrap, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # otherwise one may do it all alone
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    spark = session("cluster", master=master, settings=settings)
    spark.sparkContext.setLogLevel("OFF")
    place = Place(bootstrap=bootstrap, folder=folder, is_once=True)
    flag = folder / "killed"

    def who(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        count = sum(len(rows) for rows in batches)
        yield pa.RecordBatch.from_pydict({"pid": [executor_pid()], "count": [count]})

    def die_once(batches: Iterator[Any]) -> Iterator[Any]:
        for rows in batches:
            if len(rows) and not flag.exists():
                flag.touch()
                os.kill(executor_pid(), signal.SIGKILL)
            yield rows

    whole = read_whole(spark, place, SOURCE).select("value")
    found = whole.mapInArrow(who, "pid bigint, count bigint").collect()
    stream = read_topic(spark, place, SOURCE, query="copy").select("key", "value")
    mortal = stream.mapInArrow(die_once, "key binary, value binary")
    start = stream_to_topic(mortal, place, TARGET, query="copy")
    run([start], lambda _: None, is_in_turn=True)
    counted = {"executors": len({row.pid for row in found}), "rows": sum(r["count"] for r in found)}
    print(json.dumps(counted | {"killed": flag.exists()}))  # noqa: T201 - its answer
    spark.stop()


if __name__ == "__main__":
    main()
