"""Queries that write: rows become records, and Spark learns when they are acknowledged.

At least once: Spark reruns a failed task, which writes all its rows again. Within one task the
broker recognises a batch whose acknowledgement was lost, and counts it once. `once_sink` writes
exactly once.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kafkaesque.clock import SystemClock
from kafkaesque.errors import UnknownTopic
from kafkaesque.spark.clients import admin_of, producer_of
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.options import WriteOptions
from kafkaesque.spark.second_look import look_again

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaesque.client.producer import EncodedRecords
    from kafkaesque.client.topics import Place


@dataclass
class Written(WriterCommitMessage):
    """The result of one task."""

    records: int


def write_rows(
    options: WriteOptions,
    batches: "Iterator[pa.RecordBatch]",
    send: "Callable[[dict[Place, EncodedRecords]], None]",
) -> int:
    """Write all rows of one task, one batch per partition at a time; return their number."""
    from kafkaesque.spark.encode import encode, places_of_rows, rows_of, topics_of

    clock = SystemClock()
    counts: dict[str, int] = {}
    context = TaskContext.get()
    keyless = context.partitionId() if context is not None else 0
    written = 0
    for batch in batches:
        for name in [options.topic] if options.topic is not None else topics_of(batch):
            if name not in counts:
                counts[name] = partition_count(options, name)
        rows = rows_of(batch, with_times=options.with_times)
        waiting: dict[Place, deque[EncodedRecords]] = {
            place: deque(encode(rows, numbers, options.batch_bytes, clock.now_ms()))
            for place, numbers in places_of_rows(batch, rows, options.topic, counts, keyless)
        }
        # Ends: each pass takes one batch off every partition's queue.
        while waiting:
            send({place: queue.popleft() for place, queue in waiting.items()})
            waiting = {place: queue for place, queue in waiting.items() if queue}
        written += rows.count
        keyless += 1  # keyless rows fill one partition after another
    return written


def write_at_least_once(options: WriteOptions, batches: "Iterator[pa.RecordBatch]") -> Written:
    """Write all rows of one task; returns when every record is acknowledged."""

    def send(records: "dict[Place, EncodedRecords]") -> None:
        producer_of(options.cluster, options.codec).send(records)

    return Written(write_rows(options, batches, send))


class BatchWriter(DataSourceArrowWriter):
    """Writes in a batch query."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Write the rows of one task."""
        return write_at_least_once(self._options, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes in a streaming query."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Write the rows of one task of a micro-batch."""
        return write_at_least_once(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: the rows are already written."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: the rows stay, and Spark runs the batch again."""


def partition_count(options: WriteOptions, topic: str) -> int:
    """Return a topic's number of partitions; a missing one is created if brokers do that.

    Raises BadOption if it does not exist.
    """
    topics = admin_of(options.cluster).topics
    try:
        info = look_again(
            lambda is_newest: topics.describe(topic, is_newest=is_newest, may_create=True)
        )
    except UnknownTopic as error:
        raise BadOption(
            f"topic {topic} does not exist, and the broker does not create topics automatically: "
            "create it first"
        ) from error
    return len(info.partitions)
