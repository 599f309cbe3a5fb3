"""Writing exactly once: task attempts prepare transactions, and one decision says which count.

    driver        register the query's sink: gets an epoch, which fences older drivers
    each attempt  if the batch is decided, write nothing; else write and prepare under a unique id
    driver        decide the batch: the named transactions are committed, its others aborted

The first decision of a batch stands, even if another driver asks again. So a repeated batch may
have other tasks with other rows, attempts may run twice at the same time or crash, and two drivers
may each believe that they are the only one: of everything written for a batch, one complete set
counts.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kafkaesque.client.decisions import Decision
from kafkaesque.client.prepared import PreparedTransaction, TransactionalProducer
from kafkaesque.errors import KafkaesqueError
from kafkaesque.spark.clients import admin_of
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.options import Cluster, WriteOptions
from kafkaesque.transactional_ids import BatchTransactionId
from kafkaesque.wire.messages.register_driver import RegisterDriverRequest

_log = logging.getLogger(__name__)

SINK = "topics"
"""A query has one sink, even if its topic changes after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """The result of one attempt of a task."""

    query: str
    driver_epoch: int
    records: int
    transaction: PreparedTransaction | None
    """None if there was nothing to write, or the batch was already decided."""


def register(cluster: Cluster, query: str) -> int:
    """Become the driver of a query; raises BadOption if the brokers do not support it."""
    admin = admin_of(cluster)
    if not admin.serves(RegisterDriverRequest):
        raise BadOption(
            "deliveryGuarantee cannot be exactly-once: the brokers at "
            f"{cluster.bootstrap} do not decide batches, which needs brokers of Kafkaesque"
        )
    return admin.batches.register(query, SINK)


def attempt(
    options: WriteOptions,
    name: BatchTransactionId,
    write: Callable[[TransactionalProducer], int],
) -> Attempted:
    """Write an attempt's rows, unless the batch is decided, and leave them prepared.

    Raises OlderBatch if a later batch is decided: then the checkpoint is an older one.
    """
    admin = admin_of(options.cluster)
    nothing = Attempted(
        query=name.query, driver_epoch=name.driver_epoch, records=0, transaction=None
    )
    if admin.batches.decision(name.query, name.sink, name.batch) is not None:
        return nothing
    assert options.once is not None, "only queries that write exactly once have transactions"
    producer = admin.transactional_producer(
        str(name), options.codec, timeout_ms=options.once.transaction_ms
    )
    with _aborted_on_failure(producer):
        records = write(producer)
        if not records:
            return nothing
        transaction = producer.prepare(owner=f"Spark query {name.query}, batch {name.batch}")
    return Attempted(
        query=name.query,
        driver_epoch=name.driver_epoch,
        records=records,
        transaction=transaction,
    )


def decide(cluster: Cluster, batch: int, attempts: Sequence[Attempted]) -> Decision | None:
    """Decide that a batch consists of what its attempts prepared, unless already decided.

    None if there was no attempt: a batch without tasks needs no decision.
    """
    if not attempts:
        return None
    runs = {(one.query, one.driver_epoch) for one in attempts}
    assert len(runs) == 1, "attempts whose messages come together are of one driver"
    query, driver_epoch = runs.pop()
    prepared = [one.transaction for one in attempts if one.transaction is not None]
    return admin_of(cluster).batches.decide(query, SINK, batch, driver_epoch, prepared)


def take_back(cluster: Cluster, attempts: Sequence[Attempted]) -> None:
    """Abort what attempts prepared, unless it is decided: otherwise it would stay open for days.

    What cannot be aborted now is aborted when the query continues.
    """
    transactions = admin_of(cluster).transactions
    for one in attempts:
        if one.transaction is None:
            continue
        try:
            found = transactions.describe(one.transaction.transactional_id)
            if found.epoch == one.transaction.epoch:
                transactions.abort(found)
        except KafkaesqueError as error:
            _log.warning("%s was not aborted: %s", one.transaction.transactional_id, error)


@contextmanager
def _aborted_on_failure(producer: TransactionalProducer) -> Iterator[None]:
    """Abort at once if the block fails, so that readers do not wait for a dead transaction."""
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if not is_done:
            _abort(producer)


def _abort(producer: TransactionalProducer) -> None:
    try:
        producer.abort()
    except KafkaesqueError:
        return  # it times out, or its batch's decision aborts it
