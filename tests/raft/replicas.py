"""One replica on a list in memory, and the messages that others would send it."""

import random

from kafkaesque.config import RaftConfig
from kafkaesque.entry import Entry, HardState, Payload, TermOpened, Voters
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRequest,
    CoreMessage,
    HeartbeatResponse,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.ports import Ready
from kafkaesque.raft.raft import Raft, Role
from kafkaesque.types import Index, NodeId, Term
from tests.raft.memory_log import MemoryLog, log_start

THREE = Voters(voters=(1, 2, 3))


def opened(first: Index, term: Term) -> Entry:
    return Entry(first, first + 1, term, TermOpened())


def batch(first: Index, term: Term, value: bytes = b"value", count: int = 1) -> Entry:
    return Entry(first, first + count, term, value)


def voters_mark(first: Index, term: Term, voters: Voters) -> Entry:
    return Entry(first, first + 1, term, voters)


class Replica:
    """A core with its driver: `take` carries a Ready out and returns it."""

    def __init__(
        self,
        entries: list[Entry] | None = None,
        *,
        node: NodeId = 1,
        voters: Voters = THREE,
        term: Term = 0,
        vote: NodeId | None = None,
        config: RaftConfig | None = None,
        is_recovering: bool = False,
    ) -> None:
        self.log = MemoryLog(log_start(voters), entries)
        self.raft = Raft(
            node,
            config or RaftConfig(),
            self.log,
            HardState(term=term, vote=vote),
            random.Random(1),
            is_recovering=is_recovering,
        )
        self.raft.stable_at(self.log.stable)
        self.take()

    def take(self) -> Ready:
        ready = self.raft.ready()
        if ready.install is not None:
            self.log.install(ready.install)
        if ready.truncate is not None:
            self.log.truncate(ready.truncate)
        self.log.append(ready.append)
        return ready

    def step(self, message: CoreMessage) -> Ready:
        self.raft.step(message)
        return self.take()

    def tick(self, count: int = 1) -> list[CoreMessage]:
        sent: list[CoreMessage] = []
        for _ in range(count):
            self.raft.tick()
            sent += self.take().messages
        return sent

    def sync(self) -> Ready:
        if self.log.sync(self.log.end):
            self.raft.stable_at(self.log.stable)
        return self.take()

    def propose(self, payload: Payload, count: int = 1) -> Ready:
        self.raft.propose(payload, count)
        return self.take()

    def campaign(self) -> list[CoreMessage]:
        """Let time pass until the replica asks for votes; return the requests."""
        for _ in range(2 * self.raft.config.election_ticks):
            sent = self.tick()
            if any(isinstance(message, VoteRequest) for message in sent):
                return sent
        return []

    def accepts(self, source: NodeId, match: Index, commit: Index = 0) -> Ready:
        """Let a follower acknowledge."""
        return self.step(accepted(source, self.raft.term, match, commit))

    def answers(self, source: NodeId) -> Ready:
        """Let a follower answer a heartbeat."""
        raft = self.raft
        return self.step(
            HeartbeatResponse(source=source, target=raft.node, term=raft.term, commit=0)
        )


def a_candidate(entries: list[Entry] | None = None, *, voters: Voters = THREE) -> Replica:
    """Node 1, past the pre-vote."""
    replica = Replica(entries, voters=voters, term=entries[-1].term if entries else 0)
    replica.campaign()
    for peer in voters.voters[1:]:
        if replica.raft.role is Role.PRE_CANDIDATE:
            replica.step(granted(peer, replica.raft.term + 1, is_pre=True))
    assert replica.raft.role is Role.CANDIDATE
    return replica


def an_elected(
    entries: list[Entry] | None = None,
    *,
    voters: Voters = THREE,
    config: RaftConfig | None = None,
) -> tuple[Replica, Ready]:
    """Node 1 at the moment it becomes the leader, and its Ready."""
    replica = Replica(
        entries, voters=voters, term=entries[-1].term if entries else 0, config=config
    )
    replica.campaign()
    ready = replica.take()
    for is_pre in (True, False):
        term = replica.raft.term + is_pre
        for peer in voters.voters[1:]:
            if replica.raft.role is (Role.PRE_CANDIDATE if is_pre else Role.CANDIDATE):
                ready = replica.step(granted(peer, term, is_pre=is_pre))
    assert replica.raft.role is Role.LEADER
    return replica, ready


def a_leader(
    entries: list[Entry] | None = None,
    *,
    voters: Voters = THREE,
    config: RaftConfig | None = None,
) -> Replica:
    """Node 1, leading and serving: all followers have its whole log."""
    replica, _ = an_elected(entries, voters=voters, config=config)
    replica.sync()
    for peer in voters.members:
        if peer != 1:
            replica.accepts(peer, replica.raft.end)
    return replica


def a_follower(
    entries: list[Entry] | None = None, *, term: Term = 1, leader: NodeId = 2
) -> Replica:
    """Node 1, which follows `leader` but agrees with it on nothing yet."""
    replica = Replica(entries, term=term)
    replica.step(append(leader, term, prev_end=0, entries=()))
    return replica


def granted(source: NodeId, term: Term, *, is_pre: bool = False, yes: bool = True) -> VoteResponse:
    return VoteResponse(source=source, target=1, term=term, is_pre=is_pre, is_granted=yes)


def vote_request(
    source: NodeId,
    term: Term,
    *,
    last_term: Term = 0,
    end: Index = 0,
    is_pre: bool = False,
    is_forced: bool = False,
) -> VoteRequest:
    return VoteRequest(
        source=source,
        target=1,
        term=term,
        last_term=last_term,
        end=end,
        is_pre=is_pre,
        is_forced=is_forced,
    )


def append(
    source: NodeId,
    term: Term,
    *,
    prev_end: Index,
    prev_term: Term = 0,
    commit: Index = 0,
    entries: tuple[Entry, ...] = (),
) -> AppendRequest:
    return AppendRequest(
        source=source,
        target=1,
        term=term,
        prev_end=prev_end,
        prev_term=prev_term,
        commit=commit,
        entries=entries,
    )


def accepted(source: NodeId, term: Term, match: Index, commit: Index = 0) -> AppendAccepted:
    return AppendAccepted(source=source, target=1, term=term, match=match, commit=commit)


def of_kind(ready: Ready, kind: type[CoreMessage]) -> list[CoreMessage]:
    return [message for message in ready.messages if isinstance(message, kind)]
