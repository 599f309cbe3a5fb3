"""What is asked of transactions, and what they answer: plain values."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.transaction_records import NO_PRODUCER, Place, Transaction


class Producer(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class Init(Struct, frozen=True, kw_only=True):
    """A producer comes, or comes back, under a transactional id."""

    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    """What the producer was before, if it goes on after an error (KIP-360)."""
    fresh_id: int = NO_PRODUCER
    """A producer id that nobody has had; without one ProducerIdNeeded may be raised."""
    is_two_phase: bool = False
    """Its transactions wait for their end as long as prepared ones do (KIP-939)."""
    keeps_prepared: bool = False
    """What is open under the id is not aborted, but prepared if it is not yet (KIP-939)."""


class Add(Struct, frozen=True, kw_only=True):
    """A transaction is to write to these partitions; the first begins it."""

    transactional_id: str
    producer: Producer
    places: tuple[Place, ...]


class Verify(Struct, frozen=True, kw_only=True):
    """A partition's leader asks whether a producer may write there in its transaction."""

    transactional_id: str
    producer: Producer
    places: tuple[Place, ...]


class End(Struct, frozen=True, kw_only=True):
    """A producer ends its transaction, or who knows its id ends a prepared one."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    bumps_epoch: bool
    """Whether the producer goes on with the next epoch (transactions v2: EndTxn since 5)."""
    fresh_id: int = NO_PRODUCER


class Prepare(Struct, frozen=True, kw_only=True):
    """A producer is done with its transaction and leaves it to another to end it."""

    transactional_id: str
    producer: Producer
    owner: str


class RegisterDriver(Struct, frozen=True, kw_only=True):
    """A new driver takes over a query's sink."""

    query: str
    sink: str


class DecideBatch(Struct, frozen=True, kw_only=True):
    """A driver has a batch consist of these prepared transactions, and of no others."""

    query: str
    sink: str
    batch: int
    driver_epoch: int
    producers: Mapping[str, Producer]
    """Who prepared them, by transactional id."""


class DescribeBatch(Struct, frozen=True, kw_only=True):
    """Somebody asks what is decided of a batch."""

    query: str
    sink: str
    batch: int


class Inited(Struct, frozen=True, kw_only=True):
    """Who the producer is from now on."""

    producer: Producer
    kept: Producer | None = None
    """Who wrote the prepared transaction that was kept."""


class Added(Struct, frozen=True, kw_only=True):
    """The partitions belong to the transaction of this number."""

    number: int


class Verified(Struct, frozen=True, kw_only=True):
    """Which of the partitions do not belong to the transaction of this number."""

    number: int
    missing: frozenset[Place]


class Ended(Struct, frozen=True, kw_only=True):
    """The end is decided; with whom the producer goes on."""

    producer: Producer


class Prepared(Struct, frozen=True, kw_only=True):
    """The transaction waits for its end."""


class Described(Struct, frozen=True, kw_only=True):
    """Some transactions by their ids; one that is not there is missing."""

    transactions: dict[str, Transaction]


class DriverRegistered(Struct, frozen=True, kw_only=True):
    """The driver's epoch."""

    driver_epoch: int


class BatchDecided(Struct, frozen=True, kw_only=True):
    """Which transactions a batch consists of; all partitions know."""

    transactional_ids: tuple[str, ...]
    was_decided_before: bool


class BatchDescribed(Struct, frozen=True, kw_only=True):
    """Which transactions a batch consists of; None while it is not decided."""

    transactional_ids: tuple[str, ...] | None


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
ReplyTo: TypeAlias = Callable[[Answer], None]
"""Stands for the one who waits; a machine hands it back, and never calls it."""


class Reply(NamedTuple):
    """An answer and who waits for it."""

    to: ReplyTo
    answer: Answer


class Decision(Struct):
    """What follows from a command: records first, answers once they are committed."""

    records: list[MachineRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def reply(self, to: ReplyTo, answer: Answer) -> None:
        """Add an answer."""
        self.replies.append(Reply(to, answer))
