"""What share groups write: their start in each partition, and what is done or was delivered above.

Keys and values are msgpack arrays whose first element is their tag
(`docs/reference/format-share-groups.md`). Partitions are kept under the topic's id, not its name: a
topic deleted and recreated under its old name has another id, and so inherits nothing.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from kafkaesque.errors import NewerFormat
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import Offset, Term

FORMAT = 1

Place: TypeAlias = tuple[bytes, int]
"""A topic's id and the number of one of its partitions."""


class AdoptedKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=0):
    """The key of a partition's newest leader."""

    topic_id: bytes
    partition: int


class StartKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=1):
    """The key of a group's start in a partition."""

    topic_id: bytes
    partition: int
    group: str


class ChunkKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=2):
    """The key of what is done among 1,024 offsets."""

    topic_id: bytes
    partition: int
    group: str
    chunk: int


class CountsKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=3):
    """The key of the delivery counts of 1,024 offsets."""

    topic_id: bytes
    partition: int
    group: str
    chunk: int


GroupKey: TypeAlias = StartKey | ChunkKey | CountsKey
Key: TypeAlias = AdoptedKey | GroupKey


class AdoptedSaved(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=0):
    """The newest leader that has adopted the state of a partition."""

    term: Term
    first: Offset
    """From here on nothing was known of the offsets when its term began."""
    serial: int = 0
    """The newest of this leader's questions whose writes are taken."""


class StartSaved(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=1):
    """Where a group begins; everything below is done."""

    generation: int
    """Changes whenever an administrator sets the start; 0 before that."""
    start: Offset
    """The first offset that is not done."""
    opened_ms: int
    """The wall time when the group first came to this partition."""


class ChunkSaved(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=2):
    """What is done among 1,024 offsets, as bitmaps; what they say below the start is void."""

    done: bytes
    rejected: bytes = b""
    """Those of them that a member has rejected."""
    limit: bytes = b""
    """Those of them that were delivered too often."""


class CountRun(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Neighbouring offsets that were delivered equally often."""

    first: int
    """From the first offset of the chunk."""
    length: int
    count: int


class CountsSaved(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=3):
    """How many deliveries have ended; what it says of offsets that are done is void."""

    runs: tuple[CountRun, ...]


Value: TypeAlias = AdoptedSaved | StartSaved | ChunkSaved | CountsSaved

_VALUES: Mapping[type, type] = {
    AdoptedKey: AdoptedSaved,
    StartKey: StartSaved,
    ChunkKey: ChunkSaved,
    CountsKey: CountsSaved,
}
"""Which value each kind of key has."""

_encoder = msgspec.msgpack.Encoder()
_keys = msgspec.msgpack.Decoder(Key)
_values = msgspec.msgpack.Decoder(Value)


def groups_of(records: Iterable[MachineRecord]) -> list[str]:
    """Return the groups that have a start among these records."""
    keys = (from_record(record)[0] for record in records)
    return [key.group for key in keys if isinstance(key, StartKey)]


def to_record(key: Key, value: Value | None) -> MachineRecord:
    """Return the record that sets a key, or its tombstone."""
    return MachineRecord(_encoder.encode(key), None if value is None else _encoder.encode(value))


def from_record(record: MachineRecord) -> tuple[Key, Value | None]:
    """Return key and value; raises NewerFormat for unknown ones."""
    try:
        key = _keys.decode(record.key)
        value: Value | None = None if record.value is None else _values.decode(record.value)
    except msgspec.MsgspecError as error:
        raise NewerFormat("a record of a share group", FORMAT + 1, FORMAT) from error
    if value is not None and type(value) is not _VALUES[type(key)]:
        raise NewerFormat("a record of a share group", FORMAT + 1, FORMAT)
    return key, value
