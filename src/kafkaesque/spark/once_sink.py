"""The sinks that write exactly once; `once` explains how.

For every micro-batch Spark creates a new stream writer in a process that then sends it to the
tasks, and another one in a different process for `commit`. Only messages pass between them. So a
writer registers as the query's driver when it is sent, and never in the process that commits.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kafkaesque.spark.checkpoint import query_id
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.once import SINK, Attempted, attempt, decide, register, take_back
from kafkaesque.spark.options import WriteOptions
from kafkaesque.spark.sink import write_rows
from kafkaesque.transactional_ids import BatchTransactionId

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaesque.client.prepared import TransactionalProducer

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"
"""Properties by which Spark's tasks know their stream; undocumented, and therefore checked."""


@dataclass
class Prepared(WriterCommitMessage):
    """The result of the task attempt that Spark counts."""

    attempted: Attempted


class _OnceWriter:
    """Registers when it is sent to tasks, and writes the rows of one of them."""

    def __init__(self, options: WriteOptions, query: str) -> None:
        self._options = options
        self._query = query
        self._driver_epoch: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._driver_epoch is None:
            self._driver_epoch = register(self._options.cluster, self._query)
        return self.__dict__

    def _write(self, batch: int, iterator: "Iterator[pa.RecordBatch]") -> Prepared:
        assert self._driver_epoch is not None, "tasks only get writers that were sent"
        context = TaskContext.get()
        assert context is not None, "tasks have a context"
        name = BatchTransactionId(
            query=self._query,
            sink=SINK,
            batch=batch,
            driver_epoch=self._driver_epoch,
            task=context.partitionId(),
            attempt=context.taskAttemptId(),  # unique among this driver's attempts
        )

        def write(producer: "TransactionalProducer") -> int:
            return write_rows(self._options, iterator, producer.send)

        attempted = attempt(self._options, name, write)
        # Consume the rest even if nothing is written: stateful operators upstream depend on it.
        for _ in iterator:
            continue
        return Prepared(attempted)


class OnceStreamWriter(_OnceWriter, DataSourceStreamArrowWriter):
    """Writes in a streaming query."""

    def __init__(self, options: WriteOptions) -> None:
        assert options.once is not None, "otherwise another writer is used"
        given, checkpoint = options.once.app, options.once.checkpoint
        super().__init__(options, query_id(checkpoint) if given is None else given)
        self._is_named = given is not None

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Prepared:
        """Prepare the rows of one task of a micro-batch."""
        return self._write(self._batch_of_task(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Decide that the micro-batch consists of what these tasks prepared."""
        decide(self._options.cluster, batchId, _attempts(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Abort what was prepared, so that readers do not wait for it."""
        take_back(self._options.cluster, _attempts(messages))

    def _batch_of_task(self) -> int:
        context = TaskContext.get()
        assert context is not None, "tasks have a context"
        query = context.getLocalProperty(QUERY_PROPERTY)
        batch = context.getLocalProperty(BATCH_PROPERTY)
        if query is None or batch is None or not batch.isdigit():
            raise BadOption(
                "deliveryGuarantee cannot be exactly-once: this Spark does not give its tasks the "
                "number of their micro-batch, as Spark 4.3 does"
            )
        if not self._is_named and query != self._query:
            raise BadOption(
                f"checkpointLocation belongs to query {self._query}, but this is query {query}: "
                "set the option on the query itself"
            )
        return int(batch)


class OnceBatchWriter(_OnceWriter, DataSourceArrowWriter):
    """Writes in a batch query; Spark sends the same writer to `commit` that it sent to tasks."""

    def __init__(self, options: WriteOptions) -> None:
        assert options.once is not None, "otherwise another writer is used"
        super().__init__(options, options.once.app or _new_name())
        self._batch = options.once.version or 0

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Prepared:
        """Prepare the rows of one task."""
        return self._write(self._batch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Decide that the write consists of what these tasks prepared."""
        decide(self._options.cluster, self._batch, _attempts(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort what was prepared, so that readers do not wait for it."""
        take_back(self._options.cluster, _attempts(messages))


def _new_name() -> str:
    """Return a unique name for a write that will not be repeated."""
    return f"write-{random.Random().getrandbits(128):032x}"


def _attempts(messages: Sequence[WriterCommitMessage | None]) -> list[Attempted]:
    return [one.attempted for one in messages if isinstance(one, Prepared)]
