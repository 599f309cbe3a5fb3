"""What groups write: one record per generation or epoch, per member, per offset.

Keys and values are msgpack arrays whose first element is their tag
(`docs/reference/format-groups.md`). Offsets are kept under the topic's id, not its name: a topic
deleted and recreated under its old name has another id, and so inherits none.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from kafkaesque.errors import NewerFormat
from kafkaesque.machines.machine import MachineRecord

FORMAT = 1


class GroupKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=1):
    """The key of a group; its value says which kind of group it is."""

    group: str


class OffsetKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=2):
    """The key of a committed offset."""

    group: str
    topic_id: bytes
    partition: int


class PendingKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=3):
    """The key of an offset that commits with a producer's transaction."""

    group: str
    producer_id: int
    topic_id: bytes
    partition: int


class MemberKey(msgspec.Struct, array_like=True, frozen=True, gc=False, tag=4):
    """The key of a member of a consumer group or a share group."""

    group: str
    member_id: str


Key: TypeAlias = GroupKey | OffsetKey | PendingKey | MemberKey

PlacesSaved: TypeAlias = tuple[tuple[bytes, tuple[int, ...]], ...]
"""Partitions by the id of their topic."""


def packed(places: Iterable[tuple[bytes, int]]) -> PlacesSaved:
    """Return partitions by topic, in order."""
    by_topic: defaultdict[bytes, list[int]] = defaultdict(list)
    for topic_id, partition in sorted(places):
        by_topic[topic_id].append(partition)
    return tuple((topic_id, tuple(some)) for topic_id, some in by_topic.items())


def unpacked(saved: PlacesSaved) -> frozenset[tuple[bytes, int]]:
    """Return partitions from what was written."""
    return frozenset((topic_id, index) for topic_id, some in saved for index in some)


class MemberSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """One member of a generation."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: bytes
    """Its metadata for the chosen protocol: for consumers, its topics."""
    assignment: bytes


class Generation(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=1):
    """The durable state of a classic group: its newest generation's members and assignments."""

    number: int
    protocol_type: str
    protocol: str
    """Empty without members."""
    leader: str
    """The member that assigns; empty without members."""
    is_assigned: bool
    """Whether the leader has sent the assignments: then the group is stable."""
    changed_ms: int
    """The wall time of this record; the retention of an empty group's offsets counts from here."""
    members: tuple[MemberSaved, ...]

    def member(self, member_id: str) -> MemberSaved | None:
        """Return one of the members."""
        return next((m for m in self.members if m.member_id == member_id), None)


class TopicSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A topic as it was when a target was computed."""

    name: str
    topic_id: bytes
    partitions: int


class ConsumerGroupSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=3):
    """The durable state of a consumer group as a whole."""

    epoch: int
    assignor: str
    changed_ms: int
    """The wall time of this record; the retention of an empty group's offsets counts from here."""
    topics: tuple[TopicSaved, ...]
    """All topics that members want, as they were when this epoch's target was computed."""


class ClassicSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What a member of the classic protocol says of itself."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names and metadata, in order of preference."""


class ConsumerMemberSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=4):
    """One member of a consumer group."""

    instance_id: str | None
    rack_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    names: tuple[str, ...]
    pattern: str
    assignor: str
    epoch: int
    previous_epoch: int
    assigned: PlacesSaved
    revoking: PlacesSaved
    target: PlacesSaved
    classic: ClassicSaved | None = None
    """Set for a member that speaks the classic protocol."""


class ShareGroupSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=5):
    """The durable state of a share group as a whole."""

    epoch: int
    changed_ms: int
    """The wall time of this record."""
    topics: tuple[TopicSaved, ...]
    """All topics that members want, as they were when this epoch's target was computed."""


class ShareMemberSaved(msgspec.Struct, array_like=True, frozen=True, kw_only=True, tag=6):
    """One member of a share group."""

    rack_id: str
    client_id: str
    client_host: str
    names: tuple[str, ...]
    epoch: int
    previous_epoch: int
    assigned: PlacesSaved
    target: PlacesSaved


class CommittedOffset(msgspec.Struct, array_like=True, frozen=True, gc=False, kw_only=True, tag=2):
    """A group's position in a partition."""

    offset: int
    term: int
    """The leader epoch that the consumer knew, or -1."""
    metadata: str
    committed_ms: int


Value: TypeAlias = (
    Generation
    | CommittedOffset
    | ConsumerGroupSaved
    | ConsumerMemberSaved
    | ShareGroupSaved
    | ShareMemberSaved
)

_VALUES: Mapping[type, tuple[type, ...]] = {
    GroupKey: (Generation, ConsumerGroupSaved, ShareGroupSaved),
    OffsetKey: (CommittedOffset,),
    PendingKey: (CommittedOffset,),
    MemberKey: (ConsumerMemberSaved, ShareMemberSaved),
}
"""Which values each kind of key may have."""

NO_GENERATION = Generation(
    number=0,
    protocol_type="",
    protocol="",
    leader="",
    is_assigned=False,
    changed_ms=0,
    members=(),
)
"""Before the first generation; never written."""

_encoder = msgspec.msgpack.Encoder()
_keys = msgspec.msgpack.Decoder(Key)
_values = msgspec.msgpack.Decoder(Value)


def to_record(key: Key, value: Value | None) -> MachineRecord:
    """Return the record that sets a key, or its tombstone."""
    return MachineRecord(_encoder.encode(key), None if value is None else _encoder.encode(value))


def from_record(record: MachineRecord) -> tuple[Key, Value | None]:
    """Return key and value; raises NewerFormat for unknown ones."""
    try:
        key = _keys.decode(record.key)
        value: Value | None = None if record.value is None else _values.decode(record.value)
    except msgspec.MsgspecError as error:
        raise NewerFormat("a record of a consumer group", FORMAT + 1, FORMAT) from error
    if value is not None and type(value) not in _VALUES[type(key)]:
        raise NewerFormat("a record of a consumer group", FORMAT + 1, FORMAT)
    return key, value
