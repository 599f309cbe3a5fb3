"""The leader's half of Raft: replication, commitment, changes of voters, leadership transfer.

It covers one term; a replica that loses the term discards it.
"""

from typing import TYPE_CHECKING

from kafkaesque.entry import Entry, Payload, TermOpened, Voters
from kafkaesque.errors import ChangeInProgress, LeaderNotReady, LogError, RaftError
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRejected,
    AppendRequest,
    Heartbeat,
    HeartbeatResponse,
    InstallRequest,
    TimeoutNow,
)
from kafkaesque.raft.progress import Pace, Progress
from kafkaesque.raft.quorum import agreed_index, is_majority
from kafkaesque.types import Index, NodeId

if TYPE_CHECKING:
    from kafkaesque.raft.raft import Raft


class InvalidChange(RaftError):
    """The change of voters makes no sense for the current group."""


class Leadership:
    """The leader's half of one replica, for one term."""

    def __init__(self, raft: "Raft") -> None:
        self.progress: dict[NodeId, Progress] = {}
        self.opened_at: Index = raft.end
        self.transferee: NodeId | None = None
        self.failed_transfers: set[NodeId] = set()
        """Members that did not take over in time."""
        self.ticks = 0
        """How many ticks this leadership has had; a resting group gets none."""
        self._raft = raft
        self._since_heartbeat = 0
        self._since_check = 0
        self._since_transfer = 0
        self._follow_voters()

    @property
    def may_serve(self) -> bool:
        """Whether an entry of our own term is committed; before that no request may be answered."""
        return self._raft.commit > self.opened_at

    @property
    def is_idle(self) -> bool:
        """Whether every member has everything, knows that it is committed, and answers.

        A member merely presumed alive when a rest ended has not answered yet. A transfer needs
        ticks too: without them, one whose message got lost would never time out.
        """
        if self.transferee is not None:
            return False
        raft = self._raft
        since = self.ticks - raft.config.election_ticks + raft.config.heartbeat_ticks
        return raft.commit == raft.end and all(
            p.match == raft.end
            and p.commit == raft.commit
            and p.low >= raft.log.low
            and p.answered_at > since
            for p in self.progress.values()
        )

    def open_term(self) -> None:
        """Append the mark that makes earlier terms' entries committable (5.4.2)."""
        self._raft.extend(TermOpened(), 1)

    def propose(self, payload: Payload, count: int) -> Index:
        """Append a batch; see `Raft.propose`."""
        assert count > 0
        if not self.may_serve:
            raise LeaderNotReady("the leader has not yet committed an entry of its own term")
        if self.transferee is not None:
            raise ChangeInProgress(f"leadership is being handed to node {self.transferee}")
        return self._raft.extend(payload, count)

    def change_voters(self, voters: Voters) -> Index:
        """Append a change of membership, in force at once, one voter at a time.

        Only after an entry of our own term is committed: otherwise two leaders could each commit a
        change unknown to the other (the flaw found in single-server changes in 2015).
        """
        raft = self._raft
        if not self.may_serve:
            raise LeaderNotReady("the leader has not yet committed an entry of its own term")
        if self.transferee is not None or raft.is_changing:
            raise ChangeInProgress("another change of the group is not yet committed")
        if len(set(voters.voters) ^ set(raft.voters.voters)) > 1:
            raise InvalidChange("only one voter may be added or removed at a time")
        if not voters.voters:
            raise InvalidChange("a group cannot be left without voters")
        if voters.move < raft.voters.move:
            raise InvalidChange("the group is part of a later move")
        index = raft.extend(voters, 1)
        self._follow_voters()
        return index

    def transfer(self, target: NodeId) -> None:
        """Hand over to `target`; proposals are refused until it succeeds or times out."""
        raft = self._raft
        if target not in raft.voters.voters or target == raft.node:
            raise InvalidChange(f"node {target} is not another voter of the group")
        if self.transferee is not None:
            raise ChangeInProgress(f"leadership is being handed to node {self.transferee}")
        self.transferee = target
        self._since_transfer = 0
        self._try_transfer()

    def tick(self) -> None:
        """Advance one tick: send heartbeats, check the quorum, give up a stuck transfer."""
        self.ticks += 1
        self._since_heartbeat += 1
        self._since_check += 1
        self._since_transfer += 1
        if self.transferee is not None and self._since_transfer >= self._raft.config.transfer_ticks:
            self.failed_transfers.add(self.transferee)
            self.transferee = None
        if self._since_check >= self._raft.config.election_ticks:
            self._since_check = 0
            if not self._has_quorum():
                self._raft.step_down()
                return
        if self._since_heartbeat >= self._raft.config.heartbeat_ticks:
            self.heartbeat()

    def resume(self) -> None:
        """Continue after a rest: members could not answer meanwhile, so none counts as silent."""
        self._since_heartbeat = self._raft.config.heartbeat_ticks
        self._since_check = 0
        for progress in self.progress.values():
            progress.is_active = True
            progress.answered_at = self.ticks

    def heartbeat(self) -> None:
        """Send every member a heartbeat with our commit."""
        self._since_heartbeat = 0
        for peer in self.progress:
            self._send_heartbeat(peer)

    def step(self, message: AppendAccepted | AppendRejected | HeartbeatResponse) -> None:
        """Handle a follower's response."""
        progress = self.progress.get(message.source)
        if progress is None:
            return
        progress.is_active = True
        progress.answered_at = progress.heard_at = self.ticks
        match message:
            case AppendAccepted():
                if progress.accepted(message.match, message.commit):
                    self.try_commit()
                    if self._raft.leadership is not self:
                        return  # that commit was our own removal
                    self._try_transfer()
                self._replicate(message.source, progress)
                self._announce_commit()
            case AppendRejected():
                self._step_rejected(message, progress)
            case HeartbeatResponse():
                progress.commit = max(progress.commit, message.commit)
                progress.low = max(progress.low, message.low)
                # A restarted follower may have everything, but needs an append to know that.
                lacks = progress.match < self._raft.end or message.commit < self._raft.commit
                # A heartbeat overtakes appends. While some are queued, its response does not mean
                # that they are lost; resending them would only lengthen the queue.
                is_sending = lacks and self._raft.is_sending(message.source)
                if lacks and not is_sending and not progress.is_held_back:
                    progress.nudge()
                    self._send_append(message.source, progress)

    def replicate_all(self) -> None:
        """Send new entries to every follower that keeps up."""
        for peer, progress in self.progress.items():
            self._replicate(peer, progress)

    def try_commit(self) -> None:
        """Commit what a majority holds durably, if it is of our own term (5.4.2, figure 8)."""
        raft = self._raft
        matches = self._matches()
        agreed = matches[0] if len(matches) == 1 else agreed_index(matches)
        # An entry is of our own term exactly if it lies behind the index where we opened it.
        if agreed <= raft.commit or agreed <= self.opened_at:
            return
        raft.advance_commit(agreed)
        self._announce_commit()
        if raft.node not in raft.voters.voters and raft.commit > raft.voters_index:
            raft.step_down()  # we led the group through our own removal (4.2.2 of the thesis)

    def held_by(self, count: int) -> Index:
        """Return up to where at least `count` voters hold the log durably; -1 for nowhere."""
        matches = self._matches()
        return sorted(matches, reverse=True)[count - 1] if count <= len(matches) else -1

    def is_heard_since(self, tick: int) -> bool:
        """Return whether a majority has answered after this tick of the leadership."""
        heard = [peer for peer, progress in self.progress.items() if progress.heard_at > tick]
        return is_majority([self._raft.node, *heard], self._raft.voters.voters)

    def _matches(self) -> list[Index]:
        raft = self._raft
        return [
            raft.stable if node == raft.node else self.progress[node].match
            for node in raft.voters.voters
        ]

    def _step_rejected(self, message: AppendRejected, progress: Progress) -> None:
        is_stale = message.prev_end <= progress.match or (
            progress.pace is Pace.PROBE and message.prev_end != progress.probed_at
        )
        if is_stale:
            return
        hint = min(message.hint, message.prev_end - 1)
        # Probe only where one of our entries starts or ends: rule (h).
        log = self._raft.log
        try:
            place = log.boundary(hint) if hint > log.start.index else hint
        except LogError as error:
            self._raft.cannot_read(error)
            progress.stuck()
            return
        progress.rejected(message.prev_end, place)
        self._send_append(message.source, progress)

    def _replicate(self, peer: NodeId, progress: Progress) -> None:
        while progress.next < self._raft.end and progress.may_send(self._raft.config.inflight_max):
            self._send_append(peer, progress)
            if progress.pace is Pace.PROBE:
                return

    def _send_append(self, peer: NodeId, progress: Progress) -> None:
        raft = self._raft
        first = progress.next
        if first < raft.log.start.index:
            raft.send(
                InstallRequest(source=raft.node, target=peer, term=raft.term, start=raft.log.start)
            )
            progress.installing()
            return
        entries = self._read(first) if first < raft.end else ()
        if not entries and first < raft.end:
            progress.stuck()
            return
        prev = first
        if entries and entries[0].first > first and progress.may_agree_at(entries[0].first):
            # Compaction left a hole here. The follower may still have what was in it. Probe at the
            # hole's far end first; only a follower whose log differs there may cross it.
            prev = entries[0].first
        end = entries[-1].end if entries else first
        if progress.allowance is not None:
            progress.allowance -= sum(entry.size for entry in entries)
        raft.send(
            AppendRequest(
                source=raft.node,
                target=peer,
                term=raft.term,
                prev_end=prev,
                prev_term=raft.term_at(prev - 1),
                commit=raft.commit,
                entries=entries,
            )
        )
        progress.sent(prev, end)

    def _read(self, first: Index) -> tuple[Entry, ...]:
        """Return entries to send, starting at `first`; none if the disk cannot read them.

        A read error must not stop replication to other followers, or what was decided with it.
        """
        raft = self._raft
        try:
            return raft.entries(first, raft.config.append_bytes_max)
        except LogError as error:
            raft.cannot_read(error)
        try:
            return raft.entries(first, 1)  # the damage may lie behind the first batch
        except LogError:
            return ()

    def _send_heartbeat(self, peer: NodeId) -> None:
        raft = self._raft
        raft.send(
            Heartbeat(
                source=raft.node,
                target=peer,
                term=raft.term,
                commit=raft.commit,
                low=raft.log.low,
                matched=self.progress[peer].match,
            )
        )

    def _announce_commit(self) -> None:
        """Send the commit to followers that hold all of it; others learn of it when they do."""
        raft = self._raft
        if not raft.announces_commits:
            return
        for peer, progress in self.progress.items():
            if progress.match >= raft.commit > progress.announced:
                progress.announced = raft.commit
                self._send_heartbeat(peer)

    def _try_transfer(self) -> None:
        target = self.transferee
        if target is not None and self.progress[target].match == self._raft.end:
            raft = self._raft
            raft.send(TimeoutNow(source=raft.node, target=target, term=raft.term))

    def _has_quorum(self) -> bool:
        active = [peer for peer, progress in self.progress.items() if progress.is_active]
        for progress in self.progress.values():
            progress.is_active = False
        return is_majority([self._raft.node, *active], self._raft.voters.voters)

    def _follow_voters(self) -> None:
        """Keep one progress for each member except ourselves."""
        raft = self._raft
        self.progress = {
            peer: self.progress.get(peer) or Progress(self.opened_at)
            for peer in raft.voters.members
            if peer != raft.node
        }
        for peer in raft.voters.voters:
            if peer != raft.node:
                self.progress[peer].allowance = None  # a voter is never throttled
