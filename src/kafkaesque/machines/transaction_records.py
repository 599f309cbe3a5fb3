"""What transactions write: one record per transactional id, and one per sink of a query.

Keys and values are msgpack arrays whose first element is their tag
(`docs/reference/format-transactions.md`). A record holds all that is known under an id, so the
newest one of each id is enough; so it is with sinks.
"""

from enum import Enum
from typing import TypeAlias

import msgspec

from kafkaesque.errors import NewerFormat
from kafkaesque.machines.machine import MachineRecord

FORMAT = 2

NO_BATCH = -1
NO_EPOCH = -1
NO_PRODUCER = -1
NO_TIME = -1

Place: TypeAlias = tuple[bytes, int]
"""A topic's id and the number of one of its partitions."""


class State(Enum):
    """How far a transaction is; the names are Kafka's, but for the prepared one."""

    EMPTY = "Empty"
    """None was begun since the producer came."""
    ONGOING = "Ongoing"
    PREPARED = "Prepared"
    """Its producer is done with it; who knows its id ends it, and it does not time out soon."""
    PREPARE_COMMIT = "PrepareCommit"
    """It is decided; the partitions are being told."""
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    """All partitions know."""
    COMPLETE_ABORT = "CompleteAbort"


OPEN = frozenset({State.ONGOING, State.PREPARED})
ENDING = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


class TransactionKey(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """The key of all that is known under a transactional id."""

    transactional_id: str


class Transaction(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """A transactional id's producer and its newest transaction."""

    state: State
    producer_id: int
    epoch: int
    last_epoch: int = NO_EPOCH
    """The epoch before this one, if its owner may still ask with it: the answer may be lost."""
    previous_id: int = NO_PRODUCER
    """The producer id before this one, when its epochs were used up."""
    next_id: int = NO_PRODUCER
    """The producer id from the end of this transaction on, when its epochs are used up."""
    timeout_ms: int
    began_ms: int = NO_TIME
    """The wall time of the first partition."""
    changed_ms: int
    """The wall time of this record."""
    number: int = 0
    """Counts the transactions of this id, so that late words of an old one can be told apart."""
    places: tuple[Place, ...] = ()
    owner: str = ""
    """Who prepared it, for people."""
    begun_epoch: int = NO_EPOCH
    """The epoch that wrote what is prepared, if a producer has come since and kept it (KIP-939)."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no further epoch to give."""
        return self.epoch >= EPOCH_LAST


class SinkKey(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """The key of all that is known of a query's sink."""

    query: str
    sink: str


class Sink(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Where a query writes its batches: who drives it, and the newest batch that is decided."""

    driver_epoch: int
    """Of the newest driver; those with a lower one are fenced."""
    changed_ms: int
    """The wall time of this record."""
    batch: int = NO_BATCH
    """The newest batch that is decided. A query never goes back behind it, so one is enough."""
    decided_by: int = NO_EPOCH
    """The epoch of the driver that decided it."""
    attempts: tuple[tuple[int, int], ...] = ()
    """Task and attempt of the transactions that the batch consists of."""


EPOCH_LAST = (1 << 15) - 2
"""The last epoch that a producer is given; the one above it is for ending its transaction."""

_encoder = msgspec.msgpack.Encoder()
_keys = msgspec.msgpack.Decoder(TransactionKey | SinkKey)
_transactions = msgspec.msgpack.Decoder(Transaction)
_sinks = msgspec.msgpack.Decoder(Sink)


def to_record(transactional_id: str, value: Transaction | None) -> MachineRecord:
    """Return the record that sets what is known under an id, or that forgets it."""
    key = _encoder.encode(TransactionKey(transactional_id))
    return MachineRecord(key, None if value is None else _encoder.encode(value))


def sink_to_record(key: SinkKey, value: Sink | None) -> MachineRecord:
    """Return the record that sets what is known of a sink, or that forgets it."""
    return MachineRecord(_encoder.encode(key), None if value is None else _encoder.encode(value))


def from_record(
    record: MachineRecord,
) -> tuple[str, Transaction | None] | tuple[SinkKey, Sink | None]:
    """Return id or key and value; raises NewerFormat for what this version does not know."""
    data = record.value
    try:
        key = _keys.decode(record.key)
        if isinstance(key, SinkKey):
            return key, None if data is None else _sinks.decode(data)
        return key.transactional_id, None if data is None else _transactions.decode(data)
    except msgspec.MsgspecError as error:
        raise NewerFormat("a record of a transaction", FORMAT + 1, FORMAT) from error
