"""What is asked of transactions, and what they answer: plain values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.transaction_records import NO_PRODUCER, Place, Transaction


class Producer(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Init:
    """A producer comes, or comes back, under a transactional id."""

    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    """What the producer was before, if it goes on after an error (KIP-360)."""
    fresh_id: int = NO_PRODUCER
    """A producer id that nobody has had; without one ProducerIdNeeded may be raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """A transaction is to write to these partitions; the first begins it."""

    transactional_id: str
    producer: Producer
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """A partition's leader asks whether a producer may write there in its transaction."""

    transactional_id: str
    producer: Producer
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A producer ends its transaction, or who knows its id ends a prepared one."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    bumps_epoch: bool
    """Whether the producer goes on with the next epoch (transactions v2: EndTxn since 5)."""
    fresh_id: int = NO_PRODUCER


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """A producer is done with its transaction and leaves it to another to end it."""

    transactional_id: str
    producer: Producer
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inited:
    """Who the producer is from now on."""

    producer: Producer


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The partitions belong to the transaction of this number."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Which of the partitions do not belong to the transaction of this number."""

    number: int
    missing: frozenset[Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end is decided; with whom the producer goes on."""

    producer: Producer


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The transaction waits for its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Some transactions by their ids; one that is not there is missing."""

    transactions: dict[str, Transaction]


Answer: TypeAlias = Inited | Added | Verified | Ended | Prepared | Described | KafkaesqueError
ReplyTo: TypeAlias = Callable[[Answer], None]
"""Stands for the one who waits; a machine hands it back, and never calls it."""


class Reply(NamedTuple):
    """An answer and who waits for it."""

    to: ReplyTo
    answer: Answer


@dataclass(slots=True)
class Decision:
    """What follows from a command: records first, answers once they are committed."""

    records: list[MachineRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def reply(self, to: ReplyTo, answer: Answer) -> None:
        """Add an answer."""
        self.replies.append(Reply(to, answer))
