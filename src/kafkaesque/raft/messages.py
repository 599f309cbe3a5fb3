"""What the replicas of one group say to each other: values only.

`term` is the sender's term, except in a pre-vote, where it is the term that the sender would open.
"""

from dataclasses import dataclass
from typing import TypeAlias

from kafkaesque.entry import Entry, LogStart
from kafkaesque.types import Buffer, Index, NodeId, Offset, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    """Asks for a vote, or, as a pre-vote, whether one would be given, which changes nothing."""

    source: NodeId
    target: NodeId
    term: Term
    last_term: Term
    end: Index
    is_pre: bool
    is_forced: bool
    """The old leader asked for this election: do not refuse it because that leader is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    """Grants or refuses."""

    source: NodeId
    target: NodeId
    term: Term
    is_pre: bool
    is_granted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRequest:
    """Carries entries that follow `prev_end`; accepted only where the logs agree up to there."""

    source: NodeId
    target: NodeId
    term: Term
    prev_end: Index
    prev_term: Term
    commit: Index
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendAccepted:
    """The sender's log agrees with the leader's up to `match`, and is durable up to there."""

    source: NodeId
    target: NodeId
    term: Term
    match: Index
    commit: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRejected:
    """The logs differ at `prev_end`, perhaps not at `hint`. Tells an old leader the term, too."""

    source: NodeId
    target: NodeId
    term: Term
    prev_end: Index
    hint: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The leader is alive, and this is how far it has committed."""

    source: NodeId
    target: NodeId
    term: Term
    commit: Index
    low: Offset = 0
    """Records before this were deleted; followers forget them once they are committed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    """The follower is alive, and this is what it knows to be committed."""

    source: NodeId
    target: NodeId
    term: Term
    commit: Index
    low: Offset = 0
    """Up to here the follower has forgotten records, durably."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOffer:
    """What the entries before a start have made: so many bytes of this kind, with this CRC-32C."""

    kind: str
    size: int
    crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    """The leader no longer has what the follower needs: begin at `start` instead.

    The core sends it without a state and is given it when the state is at hand. What lies between
    is the drivers' business (`broker/installing.py`).
    """

    source: NodeId
    target: NodeId
    term: Term
    start: LogStart
    state: StateOffer | None = None
    """What is to be fetched first; None if the entries before `start` have left nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRequest:
    """Send the next piece of the state that was offered for a start at `offset`."""

    source: NodeId
    target: NodeId
    term: Term
    offset: Offset
    crc: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePiece:
    """Some bytes of an offered state."""

    source: NodeId
    target: NodeId
    term: Term
    offset: Offset
    crc: int
    position: int
    data: Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutNow:
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
"""What the core takes."""

Message: TypeAlias = CoreMessage | StateRequest | StatePiece
"""What goes from replica to replica; the driver keeps the last two from the core."""
