"""What consumer groups write: one record per generation, one per offset, committed or pending.

Keys and values are msgpack arrays whose first element is their tag
(`docs/reference/format-groups.md`). Offsets lie under the topic's id, not its name: a topic that is
deleted and made anew under its old name has another id, and so does not inherit any.
"""

from typing import TypeAlias

import msgspec

from kafkaesque.errors import NewerFormat
from kafkaesque.machines.machine import MachineRecord

FORMAT = 1


class GroupKey(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """The key of a group's generation."""

    group: str


class OffsetKey(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """The key of a committed offset."""

    group: str
    topic_id: bytes
    partition: int


class PendingKey(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """The key of an offset that a producer's transaction wants to commit."""

    group: str
    producer_id: int
    topic_id: bytes
    partition: int


Key: TypeAlias = GroupKey | OffsetKey | PendingKey


class MemberSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """One member of a generation."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: bytes
    """What it said of itself under the protocol that was chosen: for consumers, its topics."""
    assignment: bytes


class Generation(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """All that is durable of a group: who belongs to its newest generation, and who reads what."""

    number: int
    protocol_type: str
    protocol: str
    """Empty if there are no members."""
    leader: str
    """The member that assigns; empty if there are no members."""
    is_assigned: bool
    """Whether the leader has brought the assignments: then the group is stable."""
    changed_ms: int
    """The wall time of this record; offsets of an empty group are kept from here on."""
    members: tuple[MemberSaved, ...]

    def member(self, member_id: str) -> MemberSaved | None:
        """Return one of the members."""
        return next((m for m in self.members if m.member_id == member_id), None)


class CommittedOffset(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=2):
    """Where a group is in a partition."""

    offset: int
    term: int
    """The leader epoch that the consumer knew of, or -1."""
    metadata: str
    committed_ms: int


Value: TypeAlias = Generation | CommittedOffset

NO_GENERATION = Generation(
    number=0,
    protocol_type="",
    protocol="",
    leader="",
    is_assigned=False,
    changed_ms=0,
    members=(),
)
"""Before the first one; never written."""

_encoder = msgspec.msgpack.Encoder()
_keys = msgspec.msgpack.Decoder(Key)
_values = msgspec.msgpack.Decoder(Value)


def to_record(key: Key, value: Value | None) -> MachineRecord:
    """Return the record that sets a key, or that says that it is gone."""
    return MachineRecord(_encoder.encode(key), None if value is None else _encoder.encode(value))


def from_record(record: MachineRecord) -> tuple[Key, Value | None]:
    """Return key and value; raises NewerFormat for what this version does not know."""
    try:
        key = _keys.decode(record.key)
        value = None if record.value is None else _values.decode(record.value)
    except msgspec.MsgspecError as error:
        raise NewerFormat("a record of a consumer group", FORMAT + 1, FORMAT) from error
    if value is not None and isinstance(key, GroupKey) is not isinstance(value, Generation):
        raise NewerFormat("a record of a consumer group", FORMAT + 1, FORMAT)
    return key, value
