"""Commands to transaction coordinators, and their answers: plain values."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.decision import Command
from kafkaesque.machines.transactions.transaction_records import (
    NO_PRODUCER,
    Place,
    State,
    Transaction,
)

A_co = TypeVar("A_co", covariant=True)


class Producer(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class Inited(Struct, frozen=True, kw_only=True):
    """The producer's new identity."""

    producer: Producer
    kept: Producer | None = None
    """The writer of the prepared transaction that was kept."""


class Added(Struct, frozen=True, kw_only=True):
    """The partitions belong to the transaction of this number."""

    number: int


class Verified(Struct, frozen=True, kw_only=True):
    """Which of the partitions do not belong to the transaction of this number."""

    number: int
    missing: frozenset[Place]


class Ended(Struct, frozen=True, kw_only=True):
    """The outcome is decided; how the producer goes on."""

    producer: Producer


class Prepared(Struct, frozen=True, kw_only=True):
    """The transaction waits for its end."""


class Described(Struct, frozen=True, kw_only=True):
    """Transactions by their ids; unknown ones are missing."""

    transactions: dict[str, Transaction]


class DriverRegistered(Struct, frozen=True, kw_only=True):
    """The driver's epoch."""

    driver_epoch: int


class BatchDecided(Struct, frozen=True, kw_only=True):
    """The transactions of a batch; all partitions have their markers."""

    transactional_ids: tuple[str, ...]
    was_decided_before: bool


class BatchDescribed(Struct, frozen=True, kw_only=True):
    """The transactions of a batch; None while it is undecided."""

    transactional_ids: tuple[str, ...] | None


class OfTransaction(Command[A_co], Generic[A_co], frozen=True, kw_only=True):
    """A command on one transactional id."""

    transactional_id: str


class OfSink(Command[A_co], Generic[A_co], frozen=True, kw_only=True):
    """A command on the batches of one sink of a query."""

    query: str
    sink: str


class Init(OfTransaction[Inited], frozen=True, kw_only=True):
    """A producer registers, or returns, under a transactional id."""

    timeout_ms: int
    expected: Producer | None = None
    """The producer's identity before, if it recovers from an error (KIP-360)."""
    fresh_id: int = NO_PRODUCER
    """An unused producer id; without one, ProducerIdNeeded may be raised."""
    is_two_phase: bool = False
    """Its transactions have the time limit of prepared ones (KIP-939)."""
    keeps_prepared: bool = False
    """An open transaction is not aborted but prepared, unless it already is (KIP-939)."""


class Add(OfTransaction[Added], frozen=True, kw_only=True):
    """A transaction will write to these partitions; the first starts it."""

    producer: Producer
    places: tuple[Place, ...]


class Verify(OfTransaction[Verified], frozen=True, kw_only=True):
    """A partition's leader asks whether a producer may write there in its transaction."""

    producer: Producer
    places: tuple[Place, ...]


class End(OfTransaction[Ended], frozen=True, kw_only=True):
    """A producer ends its transaction, or a client that knows the id ends a prepared one."""

    producer: Producer
    is_commit: bool
    bumps_epoch: bool
    """Whether the producer goes on with the next epoch (transactions v2: EndTxn since 5)."""
    fresh_id: int = NO_PRODUCER


class Prepare(OfTransaction[Prepared], frozen=True, kw_only=True):
    """A producer prepares its transaction and leaves its end to another client."""

    producer: Producer
    owner: str


class RegisterDriver(OfSink[DriverRegistered], frozen=True, kw_only=True):
    """A new driver takes over a query's sink."""


class DecideBatch(OfSink[BatchDecided], frozen=True, kw_only=True):
    """A driver makes a batch consist of exactly these prepared transactions."""

    batch: int
    driver_epoch: int
    producers: Mapping[str, Producer]
    """The producers that prepared them, by transactional id."""


class DescribeBatch(OfSink[BatchDescribed], frozen=True, kw_only=True):
    """A client asks what is decided about a batch."""

    batch: int


class DescribeTransactions(Command[Described], frozen=True, kw_only=True):
    """An administrator lists transactions; an unset field does not filter."""

    names: tuple[str, ...] | None = None
    states: frozenset[State] | None = None
    producer_ids: frozenset[int] | None = None
    older_than_ms: int = -1
    """Only those that have been open for longer."""


Answer: TypeAlias = (
    Inited
    | Added
    | Verified
    | Ended
    | Prepared
    | Described
    | DriverRegistered
    | BatchDecided
    | BatchDescribed
    | KafkaesqueError
)
