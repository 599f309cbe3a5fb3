"""What transactions write: one record per transactional id, and one per sink of a query.

Keys and values are msgpack arrays whose first element is their tag
(`docs/reference/format-transactions.md`). A record holds everything known under its key, so the
newest one of each id or sink is enough.
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
    """The state of a transaction; the names are Kafka's, except for Prepared."""

    EMPTY = "Empty"
    """None was started since the producer registered."""
    ONGOING = "Ongoing"
    PREPARED = "Prepared"
    """Its producer is done; a client that knows its id ends it, and it times out much later."""
    PREPARE_COMMIT = "PrepareCommit"
    """The outcome is decided; the markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    """All partitions have the marker."""
    COMPLETE_ABORT = "CompleteAbort"


OPEN = frozenset({State.ONGOING, State.PREPARED})
ENDING = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


class TransactionKey(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """The key of a transactional id."""

    transactional_id: str


class Transaction(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """A transactional id's producer and its newest transaction."""

    state: State
    producer_id: int
    epoch: int
    last_epoch: int = NO_EPOCH
    """The epoch before, if its owner may still retry with it: the answer may be lost."""
    previous_id: int = NO_PRODUCER
    """The producer id before this one, if its epochs were used up."""
    next_id: int = NO_PRODUCER
    """The producer id after the end of this transaction, if the epochs are used up."""
    timeout_ms: int
    began_ms: int = NO_TIME
    """The wall time of its first partition."""
    changed_ms: int
    """The wall time of this record."""
    number: int = 0
    """Counts the transactions of this id, to recognise late requests of an old one."""
    places: tuple[Place, ...] = ()
    owner: str = ""
    """Who prepared it, for users."""
    begun_epoch: int = NO_EPOCH
    """The epoch that wrote a prepared transaction which a later producer kept (KIP-939)."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no further epochs."""
        return self.epoch >= EPOCH_LAST


class SinkKey(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """The key of a query's sink."""

    query: str
    sink: str


class Sink(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Where a query writes its batches: its driver, and the newest decided batch."""

    driver_epoch: int
    """The epoch of the newest driver; lower ones are fenced."""
    changed_ms: int
    """The wall time of this record."""
    batch: int = NO_BATCH
    """The newest decided batch. A query never goes back before it, so one is enough."""
    decided_by: int = NO_EPOCH
    """The epoch of the driver that decided it."""
    attempts: tuple[tuple[int, int], ...] = ()
    """Task and attempt of each transaction in the batch."""


EPOCH_LAST = (1 << 15) - 2
"""The last epoch given to producers; the one above it only ends its transaction."""

_encoder = msgspec.msgpack.Encoder()
_keys = msgspec.msgpack.Decoder(TransactionKey | SinkKey)
_transactions = msgspec.msgpack.Decoder(Transaction)
_sinks = msgspec.msgpack.Decoder(Sink)


def to_record(transactional_id: str, value: Transaction | None) -> MachineRecord:
    """Return the record that sets an id's value, or its tombstone."""
    key = _encoder.encode(TransactionKey(transactional_id))
    return MachineRecord(key, None if value is None else _encoder.encode(value))


def sink_to_record(key: SinkKey, value: Sink | None) -> MachineRecord:
    """Return the record that sets a sink's value, or its tombstone."""
    return MachineRecord(_encoder.encode(key), None if value is None else _encoder.encode(value))


def from_record(
    record: MachineRecord,
) -> tuple[str, Transaction | None] | tuple[SinkKey, Sink | None]:
    """Return id or key, and value; raises NewerFormat for unknown ones."""
    data = record.value
    try:
        key = _keys.decode(record.key)
        if isinstance(key, SinkKey):
            return key, None if data is None else _sinks.decode(data)
        return key.transactional_id, None if data is None else _transactions.decode(data)
    except msgspec.MsgspecError as error:
        raise NewerFormat("a record of a transaction", FORMAT + 1, FORMAT) from error
