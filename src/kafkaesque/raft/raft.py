"""Raft for one group, as a deterministic state machine: no I/O and no clock.

Inputs go in, `Ready` comes out. It is the textbook protocol (Ongaro and Ousterhout, "In search of
an understandable consensus algorithm"; section numbers below are that paper's) with pre-vote,
check-quorum, transfer of leadership, learners and one-at-a-time changes of voters. Transitions:

    FOLLOWER       --no news for an election timeout-->       PRE_CANDIDATE
    PRE_CANDIDATE  --a majority would vote-->                 CANDIDATE (term + 1)
    CANDIDATE      --a majority voted-->                      LEADER
    any            --a higher term is seen-->                 FOLLOWER
    LEADER         --no majority answers for a timeout-->     FOLLOWER
    FOLLOWER       --TimeoutNow from the leader-->            CANDIDATE (term + 1)

All indexes are half-open: `end` is the first index not in the log, `commit` the first that is not
committed. An entry may cover many indexes (a batch of records), all of one term.
"""

import random
from collections.abc import Callable
from enum import Enum, auto

from kafkaesque.callbacks import ignore
from kafkaesque.config import RaftConfig
from kafkaesque.entry import Entry, HardState, LogStart, Payload, Voters
from kafkaesque.errors import LogError, NotLeader
from kafkaesque.raft.follower import Following
from kafkaesque.raft.leadership import Leadership
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRejected,
    AppendRequest,
    CoreMessage,
    Heartbeat,
    HeartbeatResponse,
    InstallRequest,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.ports import LogView, Ready
from kafkaesque.raft.quorum import is_majority
from kafkaesque.types import Index, NodeId, Term


class Role(Enum):
    """The current role of a replica."""

    FOLLOWER = auto()
    PRE_CANDIDATE = auto()
    CANDIDATE = auto()
    LEADER = auto()


class Raft:
    """One replica of one group. Fields are for reading; inputs are the public methods."""

    def __init__(
        self,
        node: NodeId,
        config: RaftConfig,
        log: LogView,
        hard_state: HardState,
        chance: random.Random,
        *,
        is_recovering: bool = False,
    ) -> None:
        self.node = node
        self.config = config
        self.log = log
        self.term: Term = hard_state.term
        self.vote: NodeId | None = hard_state.vote
        self.role = Role.FOLLOWER
        self.leader: NodeId | None = None
        self.leadership: Leadership | None = None
        self.end: Index = log.end
        self.commit: Index = log.start.index
        self.stable: Index = -1
        self.is_recovering = is_recovering
        self.may_lead = True
        """Whether it may campaign where there are other voters; it grants votes in any case."""
        self.is_resting = False
        self.on_wake: Callable[[], None] = ignore
        """Called when a message or a proposal ends a rest."""
        self.is_sending: Callable[[NodeId], bool] = _never
        """Returns whether something bulky for a node is still waiting to be sent."""
        self.announces_commits = False
        """Whether followers learn of a commit at once instead of with the next heartbeat: for a
        group from whose state all of its brokers answer."""
        self._chance = chance
        self._voters = log.voters()
        self._votes: dict[NodeId, bool] = {}
        self._elapsed = 0
        self._timeout = self._random_timeout()
        self._following = Following(self)
        self._saved = hard_state
        self._told_commit = self.commit
        self._install: LogStart | None = None
        self._truncate: Index | None = None
        self._append: list[Entry] = []
        self._messages: list[CoreMessage] = []
        self._is_recovered = False
        self._has_lost = False
        self._unreadable: LogError | None = None

    # ── inputs ───────────────────────────────────────────────────────────────────────────────

    def tick(self) -> None:
        """Let one tick of time pass."""
        assert not self.is_resting, "a group at rest has no time"
        if self.leadership is not None:
            self.leadership.tick()
            return
        self._elapsed += 1
        if self._elapsed < self._timeout:
            return
        if self._may_campaign():
            self._campaign(is_pre=True, is_forced=False)
        elif self.is_recovering:
            self._make_itself_heard()

    def _make_itself_heard(self) -> None:
        """Request votes that do not count, only to wake a resting leader.

        Such a leader believes that all members have everything, and would never send what we lack.
        """
        self._elapsed = 0
        self._timeout = self._random_timeout()
        self._ask_for_votes(is_pre=True, is_forced=False)

    def campaign(self) -> None:
        """Request votes without waiting for a timeout; does nothing if not allowed.

        A replica may repeat its pre-vote requests: they bind no voter.
        """
        if self.role in (Role.FOLLOWER, Role.PRE_CANDIDATE) and self._may_campaign():
            self._campaign(is_pre=True, is_forced=False)

    def step(self, message: CoreMessage) -> None:
        """Handle a message from another replica."""
        assert not self._append, "the last Ready was not taken"
        assert message.target == self.node
        self.wake()
        if message.term < self.term:
            self._answer_stale(message)
            return
        if message.term > self.term and not self._adopt_term(message):
            return
        match message:
            case VoteRequest():
                self._answer_vote(message)
            case VoteResponse():
                self._count_vote(message)
            case AppendRequest():
                self._follow(message.source)
                self._following.take_append(message)
            case Heartbeat():
                self._follow(message.source)
                self._following.take_heartbeat(message)
            case InstallRequest():
                self._follow(message.source)
                self._following.take_install(message.start)
            case TimeoutNow():
                if self._may_campaign() and self.role is Role.FOLLOWER:
                    self._campaign(is_pre=False, is_forced=True)
            case AppendAccepted() | AppendRejected() | HeartbeatResponse():
                if self.leadership is not None:
                    self.leadership.step(message)

    def propose(self, payload: Payload, count: int) -> Index:
        """Append a batch of `count` records as the leader; return its first index.

        The caller stamps the batch with its position before it takes `ready()`. Raises NotLeader,
        LeaderNotReady or ChangeInProgress, and then nothing has happened.
        """
        return self._leading().propose(payload, count)

    def change_voters(self, voters: Voters) -> Index:
        """Append a change of membership; at most one voter may be added or removed at a time."""
        return self._leading().change_voters(voters)

    def transfer(self, target: NodeId) -> None:
        """Hand leadership to `target`, a voter, as soon as it has the whole log."""
        self._leading().transfer(target)

    def lacks(self, start: LogStart) -> bool:
        """Return whether an install at `start` would make this replica restart its log."""
        return not self._following.has(start)

    def rest(self) -> None:
        """Stop taking ticks; the driver makes sure that the leader is vouched for."""
        assert self.commit == self.end, "only a group in which all is settled may rest"
        self.is_resting = True

    def wake(self) -> None:
        """Take ticks again. Messages and proposals wake a replica automatically."""
        if self.is_resting:
            self.is_resting = False
            self._elapsed = 0
            if self.leadership is not None:
                self.leadership.resume()
            self.on_wake()

    def leader_gone(self) -> None:
        """Learn that the leader's node is gone: votes are no longer refused for that leader's sake.

        Any message from that leader undoes a mistake. The vote stays: it is bound to the term.
        """
        if self.role is Role.FOLLOWER and self.leader is not None:
            self.wake()
            self._become_follower(self.term, None)

    def stable_at(self, index: Index) -> None:
        """Learn that the log is durable up to `index`."""
        assert index <= self.end, "the log cannot be durable beyond its end"
        self.stable = index
        if self.leadership is not None:
            self.leadership.try_commit()
        elif self.leader is not None:
            self._following.accept()
        if self.is_recovering:
            self._following.try_end_recovery()

    def ready(self) -> Ready:
        """Return what must be done now and forget it; the driver carries it out at once."""
        if self.leadership is not None and self._append:
            self.leadership.replicate_all()
        state = None
        if self.term != self._saved.term or self.vote != self._saved.vote:
            state = self._saved = HardState(term=self.term, vote=self.vote)
        ready = Ready(
            state,
            self._has_lost,
            self._install,
            self._truncate,
            tuple(self._append),
            tuple(self._messages),
            self.commit if self.commit != self._told_commit else None,
            self._is_recovered,
            self._unreadable,
        )
        self._told_commit = self.commit
        self._install = self._truncate = None
        self._append.clear()
        self._messages.clear()
        self._is_recovered = self._has_lost = False
        self._unreadable = None
        return ready

    # ── for leadership and following ─────────────────────────────────────────────────────────

    @property
    def voters(self) -> Voters:
        """The group's members according to the newest entry in the log, committed or not."""
        return self._voters[-1][1]

    @property
    def voters_index(self) -> Index:
        """The index of the newest change of voters."""
        return self._voters[-1][0]

    @property
    def is_changing(self) -> bool:
        """Whether the newest change of voters is uncommitted; those at the start are committed."""
        return len(self._voters) > 1 and self.voters_index >= self.commit

    def send(self, message: CoreMessage) -> None:
        """Add a message to the next Ready."""
        self._messages.append(message)

    def extend(self, payload: Payload, count: int) -> Index:
        """Append an entry of our own term as the leader; return its first index."""
        entry = Entry(self.end, self.end + count, self.term, payload)
        self._append.append(entry)
        self.end = entry.end
        if isinstance(payload, Voters):
            self._voters.append((entry.first, payload))
        return entry.first

    def entries(self, first: Index, bytes_max: int) -> tuple[Entry, ...]:
        """Return entries to send; those not yet handed to the log come from memory."""
        if not self._append or first < self._append[0].first:
            return tuple(self.log.entries(first, bytes_max))
        entries: list[Entry] = []
        size = 0
        for entry in self._append:
            if entry.first >= first:
                entries.append(entry)
                size += entry.size
                if size >= bytes_max:
                    break
        return tuple(entries)

    def cannot_read(self, error: LogError) -> None:
        """Report to the driver that the log could not be read for a follower, and continue."""
        self._unreadable = self._unreadable or error

    def term_at(self, index: Index) -> Term:
        """Return the term of the entry that covers `index`, in the log or not yet handed to it."""
        if self._append and index >= self._append[0].first:
            return self.term
        return self.log.term_at(index)

    @property
    def has_changes(self) -> bool:
        """Whether this input changed the log, so that it must become durable again."""
        return bool(self._append) or self._truncate is not None

    def add(self, entries: tuple[Entry, ...]) -> None:
        """Append a leader's entries unchanged."""
        for entry in entries:
            self._append.append(entry)
            if isinstance(entry.payload, Voters):
                self._voters.append((entry.first, entry.payload))
        self.end = entries[-1].end

    def cut(self, index: Index) -> None:
        """Remove everything at and after `index`, including changes of voters."""
        assert index >= self.commit, "what is committed is never cut"
        self._truncate = index
        self.stable = min(self.stable, index)
        while len(self._voters) > 1 and self._voters[-1][0] >= index:
            self._voters.pop()

    def start_over(self, start: LogStart) -> None:
        """Discard the log and restart it at `start`."""
        self._install = start
        self._voters = [(start.index, start.voters)]
        self.end = start.index
        self.stable = -1
        self.commit = start.index

    def begin_recovery(self, leader: NodeId) -> None:
        """Stop voting until refilled, and leave the term: we lack entries we reported as durable.

        The leader steps down on the higher term and counts from scratch. So acknowledgements from
        before the loss that are still in flight do not count.
        """
        self.is_recovering = self._has_lost = True
        self._become_follower(self.term + 1, None)
        self._tell_term(leader)

    def end_recovery(self) -> None:
        """Vote again."""
        self.is_recovering = False
        self._is_recovered = True

    def advance_commit(self, commit: Index) -> None:
        """Advance the commit index; it never goes back."""
        assert self.commit <= commit <= self.end
        self.commit = commit

    def step_down(self) -> None:
        """Stop leading without a higher term; no leader is known now."""
        self._become_follower(self.term, None)

    def resign(self) -> None:
        """Stop leading if others can; ask a follower with the whole log to take over."""
        leadership = self.leadership
        others = [node for node in self.voters.voters if node != self.node]
        if leadership is None or not others:
            return
        self.wake()
        whole = [n for n in others if leadership.progress[n].match == self.end]
        whole.sort(key=lambda node: not leadership.progress[node].is_active)
        for target in whole[:1]:
            self.send(TimeoutNow(source=self.node, target=target, term=self.term))
        self.step_down()

    # ── elections ────────────────────────────────────────────────────────────────────────────

    def _may_campaign(self) -> bool:
        """Whether this replica may be needed to win, even if its removal is not yet committed.

        It may be the only one that holds the change, and then no other can be elected (4.2.2 of the
        thesis).
        """
        recent = self._voters[-2:] if self.is_changing else self._voters[-1:]
        is_voter = any(self.node in voters.voters for _, voters in recent)
        is_alone = all(voters.voters == (self.node,) for _, voters in recent)
        return is_voter and not self.is_recovering and (self.may_lead or is_alone)

    def _campaign(self, *, is_pre: bool, is_forced: bool) -> None:
        self.leader = None
        self._elapsed = 0
        self._timeout = self._random_timeout()
        self._votes = {self.node: True}
        if is_pre:
            self.role = Role.PRE_CANDIDATE
        else:
            self.role = Role.CANDIDATE
            self.term += 1
            self.vote = self.node
            self._following.forget_leader()
        self._ask_for_votes(is_pre=is_pre, is_forced=is_forced)
        self._tally()

    def _ask_for_votes(self, *, is_pre: bool, is_forced: bool) -> None:
        for peer in self.voters.voters:
            if peer != self.node:
                self.send(
                    VoteRequest(
                        source=self.node,
                        target=peer,
                        term=self.term + 1 if is_pre else self.term,
                        last_term=self._last_term(),
                        end=self.end,
                        is_pre=is_pre,
                        is_forced=is_forced,
                    )
                )

    def _answer_vote(self, request: VoteRequest) -> None:
        is_free = self.vote in (None, request.source) and self.leader is None
        may_grant = request.term > self.term if request.is_pre else is_free
        is_current = (request.last_term, request.end) >= (self._last_term(), self.end)  # 5.4.1
        is_granted = may_grant and is_current and not self.is_recovering
        if is_granted and not request.is_pre:
            self.vote = request.source
            self._elapsed = 0
        self.send(
            VoteResponse(
                source=self.node,
                target=request.source,
                term=request.term if is_granted else self.term,
                is_pre=request.is_pre,
                is_granted=is_granted,
            )
        )

    def _count_vote(self, response: VoteResponse) -> None:
        wanted = Role.PRE_CANDIDATE if response.is_pre else Role.CANDIDATE
        if self.role is not wanted:
            return
        if response.is_granted and response.is_pre and response.term != self.term + 1:
            return  # granted for an earlier term's request
        self._votes[response.source] = response.is_granted
        self._tally()

    def _tally(self) -> None:
        voters = self.voters.voters
        granted = [node for node, is_granted in self._votes.items() if is_granted]
        refused = [node for node, is_granted in self._votes.items() if not is_granted]
        if is_majority(granted, voters):
            if self.role is Role.PRE_CANDIDATE:
                self._campaign(is_pre=False, is_forced=False)
            else:
                self._become_leader()
        elif is_majority(refused, voters):
            self._become_follower(self.term, None)

    def _become_leader(self) -> None:
        self.role = Role.LEADER
        self.leader = self.node
        self.leadership = Leadership(self)
        self.leadership.open_term()

    def _become_follower(self, term: Term, leader: NodeId | None) -> None:
        if term > self.term:
            self.term = term
            self.vote = None
        self.role = Role.FOLLOWER
        self.leadership = None
        self.leader = leader
        self._elapsed = 0
        self._timeout = self._random_timeout()
        self._following.forget_leader()

    def _adopt_term(self, message: CoreMessage) -> bool:
        """Adopt a higher term; return whether the message must still be handled."""
        match message:
            case VoteRequest():
                # A live leader must not be disturbed by a replica that cannot hear it (6).
                has_lease = self.leader is not None and self._elapsed < self.config.election_ticks
                if has_lease and not message.is_forced:
                    return False
                if not message.is_pre:
                    self._become_follower(message.term, None)
            case VoteResponse():
                if not (message.is_pre and message.is_granted):
                    self._become_follower(message.term, None)
            case AppendRequest() | Heartbeat() | InstallRequest():
                self._become_follower(message.term, message.source)
            case AppendAccepted() | AppendRejected() | HeartbeatResponse() | TimeoutNow():
                self._become_follower(message.term, None)
        return True

    def _answer_stale(self, message: CoreMessage) -> None:
        """Reply to a message of an old term with the new one, so that its sender moves on."""
        match message:
            case AppendRequest() | Heartbeat() | InstallRequest():
                self._tell_term(message.source)
            case VoteRequest():
                self.send(
                    VoteResponse(
                        source=self.node,
                        target=message.source,
                        term=self.term,
                        is_pre=message.is_pre,
                        is_granted=False,
                    )
                )
            case _:
                pass

    def _tell_term(self, leader: NodeId) -> None:
        self.send(
            AppendRejected(
                source=self.node,
                target=leader,
                term=self.term,
                prev_end=self.end,
                hint=self.commit,
            )
        )

    # ── following ────────────────────────────────────────────────────────────────────────────

    def _follow(self, leader: NodeId) -> None:
        assert self.role is not Role.LEADER, "two leaders in one term"
        if self.role is not Role.FOLLOWER or self.leader != leader:
            self._become_follower(self.term, leader)
        self._elapsed = 0

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _leading(self) -> Leadership:
        if self.leadership is None:
            raise NotLeader(self.leader)
        if self.is_resting:
            self.wake()
        return self.leadership

    def _last_term(self) -> Term:
        return self.log.term_at(self.end - 1)

    def _random_timeout(self) -> int:
        return self.config.election_ticks + self._chance.randrange(self.config.election_ticks)


def _never(_: NodeId) -> bool:
    """The default: nothing waits to be sent."""
    return False
