"""The heads of the frames on a link: msgpack arrays that start with a tag.

One struct for each kind of frame, described in `docs/reference/format-link.md`. A peer's data is
checked here against types, ranges and lengths. `codec` converts them to messages.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

GROUP_CHARS_MAX = 300
"""Fits a topic's name, its id and a partition."""

ENTRIES_MAX = 1 << 16
"""Entries of one append: more than the number of smallest batches that one may carry."""

BEAT_GROUPS_MAX = 1 << 18
"""Groups in one beat: a whole table of the largest cluster."""

NODES_MAX = 1 << 10
"""Voters, or learners, of one group."""

STATE_KIND_CHARS_MAX = 20
"""The name of a kind of state: the suffix of its snapshots."""

SENTENCE_CHARS_MAX = 1_000
"""A reason shown to operators."""

Natural: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
NaturalOrNone: TypeAlias = Annotated[int, Meta(ge=-1, le=(1 << 63) - 1)]
Kind: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 16)]
Group: TypeAlias = Annotated[str, Meta(min_length=1, max_length=GROUP_CHARS_MAX)]
Nodes: TypeAlias = Annotated[tuple[Natural, ...], Meta(max_length=NODES_MAX)]
StateKind: TypeAlias = Annotated[str, Meta(max_length=STATE_KIND_CHARS_MAX)]
Checksum: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 32)]
Sentence: TypeAlias = Annotated[str, Meta(max_length=SENTENCE_CHARS_MAX)]


class Head(Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """The base of every head: a fixed number of elements."""


class BatchPlace(Head, tag=0, frozen=True):
    """A batch, which is in the body."""

    first: Natural
    end: Natural
    term: Natural
    size: Natural


class TermPlace(Head, tag=1, frozen=True):
    """A `TermOpened` mark."""

    first: Natural
    term: Natural


class VotersPlace(Head, tag=2, frozen=True):
    """A `Voters` mark."""

    first: Natural
    term: Natural
    voters: Nodes
    learners: Nodes
    move: Natural = 0


Place: TypeAlias = BatchPlace | TermPlace | VotersPlace


class GroupHead(Head, frozen=True):
    """A frame for one replica of a group."""

    group: Group
    term: Natural


class VoteRequestHead(GroupHead, tag=1, frozen=True):
    """The fields of `VoteRequest` in order; the heads below do the same for theirs."""

    last_term: Natural
    end: Natural
    is_pre: bool
    is_forced: bool


class VoteResponseHead(GroupHead, tag=2, frozen=True):
    """Its fields in order."""

    is_pre: bool
    is_granted: bool


class AppendRequestHead(GroupHead, tag=3, frozen=True):
    """Its fields; for its batches, their places in the body."""

    prev_end: Natural
    prev_term: Natural
    commit: Natural
    entries: Annotated[tuple[Place, ...], Meta(max_length=ENTRIES_MAX)]


class AppendAcceptedHead(GroupHead, tag=4, frozen=True):
    """Its fields in order."""

    match: Natural
    commit: Natural


class AppendRejectedHead(GroupHead, tag=5, frozen=True):
    """Its fields in order."""

    prev_end: Natural
    hint: Natural


class HeartbeatHead(GroupHead, tag=6, frozen=True):
    """Its fields in order."""

    commit: Natural
    low: Natural
    matched: Natural = 0


class HeartbeatResponseHead(GroupHead, tag=7, frozen=True):
    """Its fields in order."""

    commit: Natural
    low: Natural


class InstallRequestHead(GroupHead, tag=8, frozen=True):
    """Its fields, and those of its start and of the offered state."""

    offset: Natural
    marks_before: Natural
    prev_term: Natural
    voters: Nodes
    learners: Nodes
    visible_offset: Natural
    state: tuple[StateKind, Natural, Checksum] | None
    move: Natural = 0


class TimeoutNowHead(GroupHead, tag=9, frozen=True):
    """Only the term."""


class StateRequestHead(GroupHead, tag=10, frozen=True):
    """Its fields in order."""

    offset: Natural
    crc: Checksum
    position: Natural


class StatePieceHead(GroupHead, tag=11, frozen=True):
    """Its fields except the data, which is the body."""

    offset: Natural
    crc: Checksum
    position: Natural


class BeatHead(Head, tag=20, frozen=True):
    """A beat's fields in order."""

    session: Natural
    sequence: Natural
    heard_session: Natural
    heard_sequence: Natural
    holds: NaturalOrNone
    since: NaturalOrNone
    version: Natural
    rested: Annotated[tuple[tuple[Group, Natural, Natural], ...], Meta(max_length=BEAT_GROUPS_MAX)]
    woken: Annotated[tuple[Group, ...], Meta(max_length=BEAT_GROUPS_MAX)]


class CallHead(Head, tag=30, frozen=True):
    """A call; its data is the body."""

    number: Natural
    kind: Kind


class ReplyHead(Head, tag=31, frozen=True):
    """The answer to a call; its data is the body."""

    number: Natural


class FailureHead(Head, tag=32, frozen=True):
    """The refusal of a call."""

    number: Natural
    reason: Sentence


class NoteHead(Head, tag=33, frozen=True):
    """A note; its data is the body."""

    kind: Kind


class PieceHead(Head, tag=34, frozen=True):
    """A piece of a frame of `size` bytes, starting at `position`; its bytes are the body."""

    size: Natural
    position: Natural


WholeHead: TypeAlias = (
    VoteRequestHead
    | VoteResponseHead
    | AppendRequestHead
    | AppendAcceptedHead
    | AppendRejectedHead
    | HeartbeatHead
    | HeartbeatResponseHead
    | InstallRequestHead
    | TimeoutNowHead
    | StateRequestHead
    | StatePieceHead
    | BeatHead
    | CallHead
    | ReplyHead
    | FailureHead
    | NoteHead
)
"""The heads of frames that are complete in themselves."""

AnyHead: TypeAlias = WholeHead | PieceHead
