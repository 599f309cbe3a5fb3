"""One member of a classic consumer group, and how members agree on a protocol."""

from collections import Counter
from collections.abc import Collection

from msgspec import Struct

from kafkaesque.machines.decision import ReplyTo
from kafkaesque.machines.groups.group_commands import Join, Protocol, said_bytes
from kafkaesque.machines.groups.group_records import Generation, MemberSaved
from kafkaesque.text_size import chars_bytes


class Member(Struct, kw_only=True):
    """The soft state of a member: what must last is in the generation's record.

    `deadline_ms` is None until the next tick: after a restart, timeouts start again.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    size: int
    deadline_ms: int | None = None
    is_new: bool = False
    """Its first join is unanswered, so it does not know yet that it must send heartbeats."""
    join: ReplyTo | None = None
    """Takes the answer to its join."""
    sync: ReplyTo | None = None
    """Takes its assignment."""

    @classmethod
    def from_join(cls, command: Join, member_id: str) -> "Member":
        """Return a member that wants to join."""
        return cls(
            member_id=member_id,
            instance_id=command.instance_id,
            client_id=command.client_id,
            client_host=command.client_host,
            session_timeout_ms=command.session_timeout_ms,
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            protocol_type=command.protocol_type,
            protocols=command.protocols,
            size=command.size,
        )

    @classmethod
    def from_saved(cls, saved: MemberSaved, generation: Generation) -> "Member":
        """Return a member from its record."""
        return cls(
            member_id=saved.member_id,
            instance_id=saved.instance_id,
            client_id=saved.client_id,
            client_host=saved.client_host,
            session_timeout_ms=saved.session_timeout_ms,
            rebalance_timeout_ms=saved.rebalance_timeout_ms,
            protocol_type=generation.protocol_type,
            protocols=(Protocol(generation.protocol, saved.metadata),),
            size=said_bytes([(generation.protocol, saved.metadata)])
            + sum(map(chars_bytes, (saved.client_id, saved.instance_id or ""))),
        )

    def saved(self, protocol: str, assignment: bytes) -> MemberSaved:
        """Return the value of its record."""
        return MemberSaved(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            metadata=self.metadata(protocol),
            assignment=assignment,
        )

    def is_saved_as(self, saved: MemberSaved, protocol: str) -> bool:
        """Return whether its record holds nothing new."""
        is_supported = any(p.name == protocol for p in self.protocols)
        return is_supported and self.saved(protocol, saved.assignment) == saved

    def update(self, command: Join) -> None:
        """Take over what a member says when it rejoins."""
        self.client_id = command.client_id
        self.client_host = command.client_host
        self.session_timeout_ms = command.session_timeout_ms
        self.rebalance_timeout_ms = command.rebalance_timeout_ms
        self.protocols = command.protocols
        self.size = command.size

    def metadata(self, protocol: str) -> bytes:
        """Return its metadata for a protocol; empty if it does not support it."""
        return next((p.metadata for p in self.protocols if p.name == protocol), b"")

    @property
    def is_timed(self) -> bool:
        """Whether it needs timely heartbeats.

        A member that waits for an answer sends none. Only a new member is still timed then, because
        nothing else would ever end its wait.
        """
        return self.is_new or (self.join is None and self.sync is None)

    def is_overdue(self, now_ms: int) -> bool:
        """Return whether its session has expired."""
        return self.is_timed and self.deadline_ms is not None and now_ms >= self.deadline_ms


def supported_by_all(members: Collection[Member]) -> set[str]:
    """Return the protocols that every member supports."""
    counts = Counter(name for m in members for name in {p.name for p in m.protocols})
    return {name for name, count in counts.items() if count == len(members)}


def chosen_protocol(members: Collection[Member]) -> str:
    """Return the protocol with most votes: each member votes for its first that all support.

    A tie goes to the one that got a vote first, so that all replicas agree.
    """
    candidates = supported_by_all(members)
    assert candidates, "a member is only let in if it has a protocol in common with all others"
    votes = Counter(
        next(p.name for p in member.protocols if p.name in candidates) for member in members
    )
    return votes.most_common(1)[0][0]
