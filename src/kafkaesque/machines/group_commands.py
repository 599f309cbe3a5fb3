"""What is asked of consumer groups, and what they answer: plain values.

A command comes with `Now`; deciding on it gives a `Decision`: records to write, and answers to give
once everything that was known when they were decided is committed. An answer may belong to a
request that came long before: a join waits until the whole group has joined.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from kafkaesque.ages import Ages
from kafkaesque.errors import GroupError
from kafkaesque.machines.consumer_commands import ConsumerTold, ConsumerView, TopicsKnown
from kafkaesque.machines.group_records import CommittedOffset
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.text_size import chars_bytes

_PROTOCOL_BYTES = 64
"""About what a protocol takes beside its name and what is said under it."""

TopicPartition: TypeAlias = tuple[bytes, int]
"""A topic's id and the number of one of its partitions."""


class Now(NamedTuple):
    """Both clocks at one moment: one for time-outs, one for what people read."""

    monotonic_ms: int
    wall_ms: int
    ages: Ages | None = None
    """How old things are; None while the wall clock is in doubt: nothing is forgotten then."""


class Protocol(NamedTuple):
    """One way in which a member could share the work, and what it says of itself for that."""

    name: str
    metadata: bytes


def said_bytes(protocols: Iterable[tuple[str, bytes]]) -> int:
    """Return about what the protocols of a member take."""
    return sum(chars_bytes(name) + len(data) + _PROTOCOL_BYTES for name, data in protocols)


class Join(Struct, frozen=True, kw_only=True):
    """Someone wants to be a member of the next generation."""

    group: str
    member_id: str
    """Empty for one who has none yet."""
    fresh_id: str
    """The id that it gets in that case: chance comes in from outside."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    topics: TopicsKnown
    """For a group whose coordinator assigns; members of a classic one know better."""
    knows_member_ids: bool = True
    """Whether the client can be told to join again with an id (JoinGroup since version 4)."""
    can_skip_assignment: bool = True
    """Whether a leader can be told that there is nothing to assign (since version 9)."""

    @property
    def size(self) -> int:
        """How many bytes of the member's own choice must be kept."""
        names = (self.client_id, self.instance_id or "", self.protocol_type)
        return said_bytes(self.protocols) + sum(map(chars_bytes, names))


class Identity(Struct, frozen=True, kw_only=True):
    """Who a member says that it is."""

    member_id: str
    instance_id: str | None = None


class Sync(Struct, frozen=True, kw_only=True):
    """A member asks for its assignment; the leader brings everybody's."""

    group: str
    generation: int
    member: Identity
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class Heartbeat(Struct, frozen=True, kw_only=True):
    """A member is alive."""

    group: str
    generation: int
    member: Identity


class Leave(Struct, frozen=True, kw_only=True):
    """Members go."""

    group: str
    members: tuple[Identity, ...]


class Commit(Struct, frozen=True, kw_only=True):
    """A group wants its positions remembered."""

    group: str
    generation: int
    """Negative for one who is no member, and then `member` is without id."""
    member: Identity
    offsets: tuple[tuple[TopicPartition, int, int, str], ...]
    """Partition, offset, leader epoch, metadata."""


class TransactionalCommit(Struct, frozen=True, kw_only=True):
    """A producer wants positions remembered if its transaction is committed."""

    commit: Commit
    producer_id: int


class TransactionEnd(Struct, frozen=True, kw_only=True):
    """A producer's transaction has ended."""

    producer_id: int
    is_commit: bool


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
    """Offsets were taken, except for some."""

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
    """Set for a group whose coordinator assigns: its members are told of here."""


class Described(Struct, frozen=True, kw_only=True):
    """Some groups; one that is not there is missing."""

    groups: tuple[GroupView, ...]


class Fetched(Struct, frozen=True, kw_only=True):
    """All offsets of a group."""

    offsets: dict[TopicPartition, CommittedOffset]
    unstable: frozenset[TopicPartition] = frozenset()
    """Those that a transaction which is not ended yet wants to change."""


class TransactionEnded(Struct, frozen=True, kw_only=True):
    """What a transaction wanted is done or dropped."""


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
    | GroupError
)
ReplyTo: TypeAlias = Callable[[Answer], None]
"""Stands for the one who waits; a machine keeps it and hands it back, and never calls it."""


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
