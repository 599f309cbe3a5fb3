"""The entries of a replicated log: batches, which take offsets, and marks, which do not.

Raft needs entries of its own (a new leader must commit an entry of its own term; a change of voters
is an entry). If these took offsets, a partition's first record would not be at offset 0 and lag
would never reach zero. So they are *marks*: Raft gives them an index like any entry, clients never
see them, and `index = offset + marks before it`.
"""

from typing import NamedTuple, TypeAlias

from msgspec import Struct

from kafkaesque.types import Buffer, Index, NodeId, Offset, Term


class TermOpened(Struct, frozen=True, kw_only=True):
    """The mark that opens a new leader's term; these marks form the leader-epoch history."""


class Voters(Struct, frozen=True, kw_only=True):
    """The mark that sets the members of the group; both tuples are sorted."""

    voters: tuple[NodeId, ...]
    learners: tuple[NodeId, ...] = ()
    move: int = 0
    """The number of the move that made this change. A leader that knows only earlier moves must not
    change the group: it would undo what the catalog already relies on."""

    def __post_init__(self) -> None:
        assert list(self.voters) == sorted(set(self.voters)), "voters are sorted and unique"
        assert list(self.learners) == sorted(set(self.learners)), "learners are sorted and unique"
        assert not set(self.voters) & set(self.learners), "a node votes or learns, not both"

    @property
    def members(self) -> tuple[NodeId, ...]:
        """All nodes that the leader sends the log to."""
        return self.voters + self.learners


Payload: TypeAlias = Buffer | TermOpened | Voters
"""A stamped batch, or a mark."""


MARKS = (TermOpened, Voters)
"""The classes of marks, for isinstance: an inline union would be built on each call."""


class Entry(NamedTuple):
    """One entry: a batch covers as many indexes as it has offsets, a mark covers one.

    A named tuple, because one is created for every batch on the hot path.
    """

    first: Index
    end: Index
    term: Term
    payload: Payload

    @property
    def size(self) -> int:
        """About how many bytes this entry adds to a message."""
        return _MARK_BYTES if isinstance(self.payload, MARKS) else len(self.payload)


_MARK_BYTES = 64


class LogStart(Struct, frozen=True, kw_only=True):
    """Where a log starts, and what must be known about everything before it."""

    offset: Offset
    marks_before: int
    prev_term: Term
    voters: Voters
    visible_offset: Offset = 0
    """Records before this were deleted, even if the first batch still holds some of them."""

    @property
    def first_offset(self) -> Offset:
        """The first offset that a client may read."""
        visible = self.visible_offset
        return visible if visible > self.offset else self.offset  # faster than `max`

    @property
    def index(self) -> Index:
        """The index of the first entry the log may hold."""
        return self.offset + self.marks_before


class HardState(Struct, frozen=True, kw_only=True):
    """What a replica must never forget: its term, and its vote in that term."""

    term: Term
    vote: NodeId | None
