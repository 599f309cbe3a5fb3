"""Commands to consumer groups, and their answers: plain values."""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from kafkaesque.errors import GroupError, KafkaesqueError
from kafkaesque.machines.decision import Command
from kafkaesque.machines.groups.consumer_commands import ConsumerTold, ConsumerView, TopicsKnown
from kafkaesque.machines.groups.group_records import CommittedOffset
from kafkaesque.machines.groups.share_commands import ShareGroupReady, ShareTold, ShareView
from kafkaesque.text_size import chars_bytes

_PROTOCOL_BYTES = 64
"""Approximate memory of a protocol, without its name and metadata."""

TopicPartition: TypeAlias = tuple[bytes, int]
"""A topic's id and a partition number."""


class Protocol(NamedTuple):
    """One way for members to share the work, with the member's metadata for it."""

    name: str
    metadata: bytes


def said_bytes(protocols: Iterable[tuple[str, bytes]]) -> int:
    """Return the approximate memory that a member's protocols take."""
    return sum(chars_bytes(name) + len(data) + _PROTOCOL_BYTES for name, data in protocols)


class Identity(Struct, frozen=True, kw_only=True):
    """The identity that a member claims."""

    member_id: str
    instance_id: str | None = None


class Joined(Struct, frozen=True, kw_only=True):
    """A member is part of a generation."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """For the leader: id, instance id and metadata of every member."""
    skip_assignment: bool = False


class Synced(Struct, frozen=True, kw_only=True):
    """A member's assignment."""

    protocol_type: str
    protocol: str
    assignment: bytes


class Alive(Struct, frozen=True, kw_only=True):
    """The member's generation still holds."""


class Left(Struct, frozen=True, kw_only=True):
    """For each member in the order of the command: None, or why it could not leave."""

    failures: tuple[GroupError | None, ...]


class Committed(Struct, frozen=True, kw_only=True):
    """Offsets were stored, except these."""

    refused: frozenset[TopicPartition]
    """Their metadata is too long."""

    homeless: frozenset[TopicPartition] = frozenset()
    """There is no room for them."""


class Deleted(Struct, frozen=True, kw_only=True):
    """Offsets were deleted, except these, which a member reads."""

    refused: frozenset[TopicPartition] = frozenset()


class MemberView(Struct, frozen=True, kw_only=True):
    """A member as an administrator sees it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupView(Struct, frozen=True, kw_only=True):
    """A group as an administrator sees it."""

    group: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberView, ...] = ()
    consumers: ConsumerView | None = None
    """Set for a consumer group whose coordinator assigns: its members are listed here."""
    shares: ShareView | None = None
    """Set for a share group, likewise."""


class Described(Struct, frozen=True, kw_only=True):
    """Groups that exist; unknown ones are missing."""

    groups: tuple[GroupView, ...]


class Fetched(Struct, frozen=True, kw_only=True):
    """All offsets of a group."""

    offsets: dict[TopicPartition, CommittedOffset]
    unstable: frozenset[TopicPartition] = frozenset()
    """Partitions that a transaction in progress is about to change."""


class TransactionEnded(Struct, frozen=True, kw_only=True):
    """The transaction's offsets took effect or were dropped."""


class Join(Command[Joined], frozen=True, kw_only=True):
    """A client wants to be a member of the next generation."""

    group: str
    member_id: str
    """Empty if it has none yet."""
    fresh_id: str
    """The id it gets in that case: randomness comes from outside."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    topics: TopicsKnown
    """For groups whose coordinator assigns; classic groups ignore it."""
    knows_member_ids: bool = True
    """Whether the client can be told to rejoin with an id (JoinGroup since version 4)."""
    can_skip_assignment: bool = True
    """Whether a leader can be told to skip the assignment (since version 9)."""

    @property
    def size(self) -> int:
        """How many bytes chosen by the member must be kept."""
        names = (self.client_id, self.instance_id or "", self.protocol_type)
        return said_bytes(self.protocols) + sum(map(chars_bytes, names))


class Sync(Command[Synced], frozen=True, kw_only=True):
    """A member requests its assignment; the leader sends everyone's."""

    group: str
    generation: int
    member: Identity
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class Heartbeat(Command[Alive], frozen=True, kw_only=True):
    """A member is alive."""

    group: str
    generation: int
    member: Identity


class Leave(Command[Left], frozen=True, kw_only=True):
    """Members leave."""

    group: str
    members: tuple[Identity, ...]


class Commit(Command[Committed], frozen=True, kw_only=True):
    """A group commits offsets."""

    group: str
    generation: int
    """Negative for a client that is no member; then `member` has no id."""
    member: Identity
    offsets: tuple[tuple[TopicPartition, int, int, str], ...]
    """Partition, offset, leader epoch, metadata."""


class TransactionalCommit(Command[Committed], frozen=True, kw_only=True):
    """A producer commits offsets as part of its transaction."""

    commit: Commit
    producer_id: int


class TransactionEnd(Command[TransactionEnded], frozen=True, kw_only=True):
    """A producer's transaction has ended."""

    producer_id: int
    is_commit: bool


class FetchOffsets(Command[Fetched], frozen=True, kw_only=True):
    """Fetch all offsets of a group; an unknown group has none."""

    group: str
    member: Identity | None = None
    """Set by a member of a group whose coordinator assigns; its epoch must be current."""
    epoch: int = -1


class DeleteOffsets(Command[Deleted], frozen=True, kw_only=True):
    """An administrator deletes offsets, each with its topic's name."""

    group: str
    places: tuple[tuple[str, TopicPartition], ...]


class DescribeGroups(Command[Described], frozen=True, kw_only=True):
    """An administrator describes some groups, or all."""

    groups: tuple[str, ...] | None


class DeleteGroup(Command[Deleted], frozen=True, kw_only=True):
    """An administrator deletes a group without members, and its offsets."""

    group: str


Answer: TypeAlias = (
    Joined
    | Synced
    | Alive
    | Left
    | Committed
    | Deleted
    | Described
    | Fetched
    | TransactionEnded
    | ConsumerTold
    | ShareTold
    | ShareGroupReady
    | KafkaesqueError
)
