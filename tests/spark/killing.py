"""A program with one streaming query that kills itself at a chosen step of a micro-batch.

python -m tests.spark.killing BOOTSTRAP FOLDER STEP

It copies the topic `numbers-STEP`: to a table if the step belongs to the source, so that every
record must be there once, and to the topic `copied-STEP` if it belongs to a sink. The at-least-once
sink may duplicate records of the killed micro-batch, the exactly-once sink may not. It kills once,
and the next run goes to the end.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, InputPartition
from pyspark.sql.types import StructType

from kafkaesque.spark.datasource import KafkaesqueSource
from kafkaesque.spark.once_sink import OnceStreamWriter, Prepared
from kafkaesque.spark.options import Mode, parse_read, parse_write
from kafkaesque.spark.pipelines.blocks import Place, each_batch, write_table
from kafkaesque.spark.pipelines.query_runner import run
from kafkaesque.spark.session import session
from kafkaesque.spark.sink import StreamWriter, Written
from kafkaesque.spark.stream import StreamReader

FOLDER = "KILLING_FOLDER"
STEP = "KILLING_STEP"
ROWS_PER_BATCH = 100
KILLED_BATCH = 2
"""Batch 0 is the anchor and batch 1 the first with rows."""
SOURCE_STEPS = ("latest-offset", "partitions", "read", "before-write", "after-write")
SINK_STEPS = ("sink-before", "sink-middle", "sink-after", "sink-commit")
ONCE_STEPS = ("once-before", "once-middle", "once-prepared", "once-undecided", "once-decided")


def kill_at(step: str, *, is_time: bool = True) -> None:
    """Kill driver, JVM and worker if this is the chosen step and it was not done before."""
    folder = Path(os.environ[FOLDER])
    flag = folder / "killed"
    if os.environ[STEP] != step or flag.exists() or not is_time:
        return
    flag.touch()
    # Itself last: a worker that survives would go on writing.
    for pid in (*(folder / "pids").read_text().split(), str(os.getpid())):
        os.kill(int(pid), signal.SIGKILL)


class KillingReader(StreamReader):
    """The source, with the steps of planning and reading."""

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        found = super().latestOffset(start, limit)
        kill_at("latest-offset", is_time=_is_under_way(start))
        return found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Any:
        found = super().partitions(start, end)
        kill_at("partitions", is_time=_is_under_way(start))
        return found

    def read(self, partition: InputPartition) -> Any:
        for rows in super().read(partition):
            yield rows
            kill_at("read", is_time=partition.parts[0].start > 0)


class KillingWriter(StreamWriter):
    """The sink, with the steps of writing and committing."""

    def write(self, iterator: Any) -> Written:
        batches = list(iterator)
        is_time = any(len(rows) and _number(rows) >= ROWS_PER_BATCH for rows in batches)
        kill_at("sink-before", is_time=is_time)
        half = [rows.slice(0, len(rows) // 2) for rows in batches]
        super().write(iter(half))
        kill_at("sink-middle", is_time=is_time)
        written = super().write(iter([rows.slice(len(rows) // 2) for rows in batches]))
        kill_at("sink-after", is_time=is_time)
        return written

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        super().commit(messages, batchId)
        kill_at("sink-commit", is_time=batchId >= KILLED_BATCH)


class KillingOnceWriter(OnceStreamWriter):
    """The exactly-once sink, with the steps of writing and deciding."""

    def write(self, iterator: Any) -> Prepared:
        batches = list(iterator)
        is_time = any(len(rows) and _number(rows) >= ROWS_PER_BATCH for rows in batches)
        kill_at("once-before", is_time=is_time)

        def halves() -> Iterator[Any]:
            yield from (rows.slice(0, len(rows) // 2) for rows in batches)
            kill_at("once-middle", is_time=is_time)
            yield from (rows.slice(len(rows) // 2) for rows in batches)

        prepared = super().write(halves())
        kill_at("once-prepared", is_time=is_time)
        return prepared

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        kill_at("once-undecided", is_time=batchId >= KILLED_BATCH)
        super().commit(messages, batchId)
        kill_at("once-decided", is_time=batchId >= KILLED_BATCH)


class KillingSource(KafkaesqueSource):
    """The format, under another name."""

    @classmethod
    def name(cls) -> str:
        return "killing"

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        return KillingReader(parse_read(self.options, Mode.STREAM), self._columns(schema))

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        options = parse_write(self.options, Mode.STREAM)
        return KillingWriter(options) if options.once is None else KillingOnceWriter(options)


def _is_under_way(start: dict[str, Any]) -> bool:
    """Return whether this is the second micro-batch with rows, or a later one."""
    return any(at > 0 for part in start.values() if isinstance(part, dict) for at in part.values())


def _number(rows: Any) -> int:
    return int(rows.column("value")[0].as_py())


def main() -> None:
    """Run the query to the end of the topic."""
    bootstrap, folder, step = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    os.environ |= {FOLDER: str(folder), STEP: step}
    spark = session("killing", settings={"spark.ui.showConsoleProgress": "false"})
    spark.sparkContext.setLogLevel("OFF")
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    (folder / "pids").write_text(f"{jvm} {os.getpid()}")
    spark.dataSource.register(KillingSource)
    options = {"kafka.bootstrap.servers": bootstrap}
    numbers = (
        spark.readStream.format("killing")
        .options(**options, subscribe=f"numbers-{step}", startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", str(ROWS_PER_BATCH))
        .load()
        .select("key", "value")
    )
    place = Place(bootstrap=bootstrap, folder=folder, is_once=True)

    def write(rows: Any, batch: int) -> None:
        kill_at("before-write", is_time=batch >= KILLED_BATCH)
        write_table(rows, place.table("numbers"), batch)
        kill_at("after-write", is_time=batch >= KILLED_BATCH)

    if step in SINK_STEPS + ONCE_STEPS:
        if step in ONCE_STEPS:
            options["deliveryGuarantee"] = "exactly-once"
        writer = numbers.writeStream.format("killing").options(**options, topic=f"copied-{step}")
        writer = writer.option("checkpointLocation", place.checkpoint("numbers"))
        start = writer.trigger(availableNow=True).start
    else:
        start = each_batch(numbers, place, write, query="numbers")
    run([start], lambda _: None, is_in_turn=True)
    spark.stop()


if __name__ == "__main__":
    main()
