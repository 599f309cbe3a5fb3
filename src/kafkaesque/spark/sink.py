"""Queries that write: rows become records, and Spark is told when they are safe.

At least once: a task that fails is run again by Spark and writes all its rows again. Within one
task a batch whose acknowledgement was lost is told apart by the broker and counts once. What writes
exactly once is `once_sink`.
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
from kafkaesque.errors import BadOption, UnknownTopic
from kafkaesque.spark.clients import admin_of, producer_of
from kafkaesque.spark.options import WriteOptions
from kafkaesque.spark.second_look import look_again

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaesque.client.producer import EncodedRecords
    from kafkaesque.client.topics import Place


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    records: int


def write_rows(
    options: WriteOptions,
    batches: "Iterator[pa.RecordBatch]",
    send: "Callable[[dict[Place, EncodedRecords]], None]",
) -> int:
    """Write all rows of one task, one batch a partition at a time; return how many they were."""
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
        # Ends: each turn takes one batch off every partition's queue.
        while waiting:
            send({place: queue.popleft() for place, queue in waiting.items()})
            waiting = {place: queue for place, queue in waiting.items() if queue}
        written += rows.count
        keyless += 1  # those without key fill one partition after the other
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
        """Do nothing: what was written counts already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: what was written stays, and Spark runs the batch again."""


def partition_count(options: WriteOptions, topic: str) -> int:
    """Return how many partitions a topic has; a missing one is created if brokers do that.

    Raises BadOption if there is none.
    """
    topics = admin_of(options.cluster).topics
    try:
        info = look_again(
            lambda is_newest: topics.describe(topic, is_newest=is_newest, may_create=True)
        )
    except UnknownTopic as error:
        raise BadOption(
            f"topic {topic} does not exist, and the broker does not create topics by itself: "
            "create it before writing to it"
        ) from error
    return len(info.partitions)
