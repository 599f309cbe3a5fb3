"""Requests about transactions between coordinators and leaders, and their answers: plain values.

Between brokers they travel as msgpack arrays whose first element is their tag. All may be retried
when no answer came: ending a transaction twice, or checking twice, changes nothing.
"""

from typing import TypeAlias

import msgspec

from kafkaesque.errors import BrokerError, KafkaesqueError, NotCoordinator, UnknownTopic
from kafkaesque.machines.catalog.catalog_commands import Refused, Unknown
from kafkaesque.machines.transactions import transaction_errors as errors
from kafkaesque.machines.transactions.transaction_records import Place
from kafkaesque.types import NO_TERM, Term


class Marker(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The end of a producer's transaction, as sent to its partitions."""

    producer_id: int
    epoch: int
    is_commit: bool
    coordinator_term: Term
    number: int


class EndThere(Marker, array_like=True, frozen=True, kw_only=True, tag=1):
    """A coordinator to the leader of partitions: the transaction has ended, write the marker."""

    places: list[tuple[bytes, int, Term]]
    """Topic, partition, and the term in which it is thought to be led: in a later term the request
    may be late, and the producer already in its next transaction."""


class Check(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """The leader of a partition to a coordinator: may this producer write here?"""

    transactional_id: str
    producer_id: int
    epoch: int
    place: Place
    adds: bool
    """Whether this adds the partition to the transaction (transactions v2)."""
    coordinator_term: Term = NO_TERM
    """The term of the newest coordinator known to the partition: an older one may not know that it
    was replaced, and that the transaction has ended."""


Question: TypeAlias = EndThere | Check


class Marked(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=4):
    """These partitions have the marker committed, or need none; the others are retried."""

    settled: list[Place]


class Allowed(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=5):
    """The producer may write, in its transaction of this number."""

    number: int


Answer: TypeAlias = Marked | Allowed | Refused | Unknown


def to_error(answer: Marked | Refused | Unknown) -> KafkaesqueError:
    """Return why a producer may not write; an unknown reason is transient."""
    if not isinstance(answer, Refused):
        return NotCoordinator("the coordinator did not answer")
    return _ERRORS.get(answer.error, NotCoordinator)(answer.text)


_ERRORS: dict[str, type[BrokerError]] = {
    kind.__name__: kind
    for kind in (
        errors.InvalidTransactionalId,
        errors.UnknownTransactionalId,
        errors.InvalidTransactionState,
        errors.InvalidProducerMapping,
        errors.ConcurrentTransactions,
        errors.ProducerFenced,
        errors.CoordinatorFenced,
        errors.TransactionUnverified,
        errors.TooManyTransactions,
        UnknownTopic,
    )
}
"""A coordinator's refusals; each is made from its message. All others are transient."""
