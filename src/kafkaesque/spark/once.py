"""Writing exactly once: attempts of tasks prepare transactions, one decision says which count.

    driver        register the query's sink: an epoch, by which older drivers are fenced
    each attempt  is the batch decided? then write nothing; else write and prepare under an id that
                  nobody else has
    driver        decide the batch: the named transactions are committed, its others aborted

The first decision of a batch stands, whoever asks again. So it does not matter that a repeated
batch has other tasks with other rows, that attempts run twice at the same time or die, or that two
drivers believe to be the one: of all that was written for a batch one whole set counts.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kafkaesque.client.decisions import Decision
from kafkaesque.client.prepared import PreparedTransaction, TransactionalProducer
from kafkaesque.errors import BadOption, KafkaesqueError
from kafkaesque.spark.clients import admin_of
from kafkaesque.spark.options import Cluster, WriteOptions
from kafkaesque.transactional_ids import BatchTransactionId
from kafkaesque.wire.messages.register_driver import RegisterDriverRequest

_log = logging.getLogger(__name__)

SINK = "topics"
"""A query has one sink, and keeps it even if its topic is another one after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """What one attempt of a task leaves behind."""

    query: str
    driver_epoch: int
    records: int
    transaction: PreparedTransaction | None
    """None if there was nothing to write, or nothing was to be written any more."""


def register(cluster: Cluster, query: str) -> int:
    """Become the driver of a query; raises BadOption if the brokers have no such thing."""
    admin = admin_of(cluster)
    if not admin.serves(RegisterDriverRequest):
        raise BadOption(
            "deliveryGuarantee cannot be exactly-once here: the brokers at "
            f"{cluster.bootstrap} do not decide batches, which takes those of Kafkaesque"
        )
    return admin.batches.register(query, SINK)


def attempt(
    options: WriteOptions,
    name: BatchTransactionId,
    write: Callable[[TransactionalProducer], int],
) -> Attempted:
    """Write what one attempt has, unless the batch is decided, and leave it prepared.

    Raises OlderBatch if a later one is decided: then the checkpoint is an older one.
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
    """Make a batch consist of what its attempts prepared, unless it is decided already.

    None if there was no attempt at all: a batch without tasks has nothing to be decided.
    """
    if not attempts:
        return None
    runs = {(one.query, one.driver_epoch) for one in attempts}
    assert len(runs) == 1, "attempts whose messages come together are of one driver"
    query, driver_epoch = runs.pop()
    prepared = [one.transaction for one in attempts if one.transaction is not None]
    return admin_of(cluster).batches.decide(query, SINK, batch, driver_epoch, prepared)


def take_back(cluster: Cluster, attempts: Sequence[Attempted]) -> None:
    """Abort what attempts prepared, where it is not decided: nothing else would for days.

    What cannot be aborted now is aborted when the query goes on.
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
    """Abort at once if the block fails, so that nobody waits for a transaction that is dead."""
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
        return  # it times out, or the decision on its batch aborts it
