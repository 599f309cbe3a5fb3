"""The messages between the replicas of one group: values only.

`term` is the sender's term, except in a pre-vote, where it is the term that the sender would open.
"""

from typing import TypeAlias

from msgspec import Struct

from kafkaesque.entry import Entry, LogStart
from kafkaesque.types import Buffer, Index, NodeId, Offset, Term


class VoteRequest(Struct, frozen=True, kw_only=True):
    """Asks for a vote; as a pre-vote, only whether one would be granted, which changes nothing."""

    source: NodeId
    target: NodeId
    term: Term
    last_term: Term
    end: Index
    is_pre: bool
    is_forced: bool
    """The old leader asked for this election: do not refuse it because that leader is alive."""


class VoteResponse(Struct, frozen=True, kw_only=True):
    """Grants or refuses a vote."""

    source: NodeId
    target: NodeId
    term: Term
    is_pre: bool
    is_granted: bool


class AppendRequest(Struct, frozen=True, kw_only=True):
    """Carries entries that follow `prev_end`; accepted only where the logs agree up to there."""

    source: NodeId
    target: NodeId
    term: Term
    prev_end: Index
    prev_term: Term
    commit: Index
    entries: tuple[Entry, ...]


class AppendAccepted(Struct, frozen=True, kw_only=True):
    """The sender's log agrees with the leader's up to `match`, and is durable up to there."""

    source: NodeId
    target: NodeId
    term: Term
    match: Index
    commit: Index


class AppendRejected(Struct, frozen=True, kw_only=True):
    """The logs differ at `prev_end`, perhaps not at `hint`. Also tells an old leader the term."""

    source: NodeId
    target: NodeId
    term: Term
    prev_end: Index
    hint: Index


class Heartbeat(Struct, frozen=True, kw_only=True):
    """The leader is alive, and this is how far it has committed."""

    source: NodeId
    target: NodeId
    term: Term
    commit: Index
    low: Offset = 0
    """Records before this were deleted; followers forget them once they are committed there."""
    matched: Index = 0
    """Up to here this follower has acknowledged entries in this term, as the leader counts."""


class HeartbeatResponse(Struct, frozen=True, kw_only=True):
    """The follower is alive, and this is what it knows to be committed."""

    source: NodeId
    target: NodeId
    term: Term
    commit: Index
    low: Offset = 0
    """Up to here the follower has forgotten records, durably."""


class StateOffer(Struct, frozen=True, kw_only=True):
    """The state built from the entries before a start: its kind, size and CRC-32C."""

    kind: str
    size: int
    crc: int


class InstallRequest(Struct, frozen=True, kw_only=True):
    """The leader no longer has the entries that the follower needs: restart at `start` instead.

    The core sends it without a state, and receives it once the state is available. The drivers
    handle the transfer in between (`broker/replication/state_transfer.py`).
    """

    source: NodeId
    target: NodeId
    term: Term
    start: LogStart
    state: StateOffer | None = None
    """The state to fetch first; None if the entries before `start` left none."""


class StateRequest(Struct, frozen=True, kw_only=True):
    """Requests the next piece of the state that was offered for a start at `offset`."""

    source: NodeId
    target: NodeId
    term: Term
    offset: Offset
    crc: int
    position: int


class StatePiece(Struct, frozen=True, kw_only=True):
    """Some bytes of an offered state."""

    source: NodeId
    target: NodeId
    term: Term
    offset: Offset
    crc: int
    position: int
    data: Buffer


class TimeoutNow(Struct, frozen=True, kw_only=True):
    """The leader hands over: campaign at once."""

    source: NodeId
    target: NodeId
    term: Term


CoreMessage: TypeAlias = (
    VoteRequest
    | VoteResponse
    | AppendRequest
    | AppendAccepted
    | AppendRejected
    | Heartbeat
    | HeartbeatResponse
    | InstallRequest
    | TimeoutNow
)
"""The messages that the core handles."""

Message: TypeAlias = CoreMessage | StateRequest | StatePiece
"""The messages between replicas; the driver handles the last two without the core."""
