"""The follower's half of Raft: takes entries, commits and starts from a leader, and replies.

It tracks how far the log agrees with the current leader's; a new leader resets that.
"""

from typing import TYPE_CHECKING

from kafkaesque.entry import Entry, LogStart
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRejected,
    AppendRequest,
    Heartbeat,
    HeartbeatResponse,
)
from kafkaesque.types import Index

if TYPE_CHECKING:
    from kafkaesque.raft.raft import Raft


class Following:
    """The follower's half of one replica."""

    def __init__(self, raft: "Raft") -> None:
        self._raft = raft
        self._matched: Index = raft.commit
        """Up to here our log is known to agree with the current leader's."""
        self._leader_commit: Index = 0
        self._goal: Index = 0
        """What a recovering replica must hold before it votes; 0 until its leader reports a
        commit."""

    def forget_leader(self) -> None:
        """Forget all but the commit: committed entries agree with every leader's log."""
        self._matched = self._raft.commit
        self._leader_commit = self._goal = 0

    def take_append(self, request: AppendRequest) -> None:
        """Append entries, or reject them if they do not fit."""
        raft = self._raft
        prev = request.prev_end
        # Committed entries agree with every leader's, so they need no comparison (and, once
        # trimmed, allow none).
        agrees = prev <= raft.commit or (
            prev <= raft.end and raft.log.term_at(prev - 1) == request.prev_term
        )
        if not agrees:
            self._leader_commit = max(self._leader_commit, request.commit)
            hint = raft.end if prev > raft.end else raft.log.term_start(prev - 1)
            raft.send(
                AppendRejected(
                    source=raft.node,
                    target=request.source,
                    term=raft.term,
                    prev_end=prev,
                    hint=max(hint, raft.commit),
                )
            )
            return
        self._matched = max(self._matched, self._take_entries(prev, request.entries))
        self._take_commit(request.commit)
        if not raft.has_changes:
            self.accept()

    def take_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Learn the leader's commit, and show that we are alive.

        A leader counts only what we reported as durable in this term, and within a term nothing
        that agrees with its leader is cut. So if it counts more than we have, our disk has lost
        entries. A late or repeated heartbeat cannot mislead us: it counts less.
        """
        raft = self._raft
        if heartbeat.matched > raft.end:
            raft.begin_recovery(heartbeat.source)
            return
        self._take_commit(heartbeat.commit)
        raft.send(
            HeartbeatResponse(
                source=raft.node,
                target=heartbeat.source,
                term=raft.term,
                commit=self._known_commit,
                low=raft.log.low,
            )
        )

    def has(self, start: LogStart) -> bool:
        """Return whether our log reaches a leader's start and agrees with it there."""
        raft = self._raft
        return start.index <= raft.commit or (
            start.index <= raft.end and raft.log.term_at(start.index - 1) == start.prev_term
        )

    def take_install(self, start: LogStart) -> None:
        """Restart the log at `start`, unless it already reaches there and agrees."""
        raft = self._raft
        has_it = self.has(start)
        if not has_it:
            raft.start_over(start)
        self._matched = max(self._matched, start.index)
        # A start lies below the leader's commit, so it is committed. The next append carries the
        # leader's actual commit, which a recovering replica needs.
        raft.advance_commit(max(raft.commit, start.index))
        if has_it:
            self.accept()

    def accept(self) -> None:
        """Report to the leader how far we agree and are durable."""
        raft = self._raft
        assert raft.leader is not None
        if raft.stable < raft.log.start.index:
            return
        raft.send(
            AppendAccepted(
                source=raft.node,
                target=raft.leader,
                term=raft.term,
                match=min(raft.stable, self._matched),
                commit=self._known_commit,
            )
        )

    @property
    def _known_commit(self) -> Index:
        """The commit to report to the leader: 0 while our vote does not count.

        So the leader knows when a refilled replica may get a vote, and keeps the group awake until
        then.
        """
        return 0 if self._raft.is_recovering else self._raft.commit

    def try_end_recovery(self) -> None:
        """Let a replica that lost synced data vote again once it holds all that a leader committed.

        The goal is the leader's commit when it was first reported: under load the leader's commit
        is always ahead of ours. It counts only once it covers an entry of the leader's own term:
        before that the leader itself may not know what is committed.
        """
        raft = self._raft
        if not raft.is_recovering or raft.leader is None:
            return
        reached = min(raft.commit, raft.stable)
        if self._goal <= reached and not self._is_of_this_term(self._goal):
            self._goal = self._leader_commit
        if self._goal <= reached and self._is_of_this_term(self._goal) and not raft.has_changes:
            raft.end_recovery()

    def _is_of_this_term(self, end: Index) -> bool:
        """Whether the last entry before `end`, which our log holds, is of the current term."""
        raft = self._raft
        return end >= max(1, raft.log.start.index) and raft.log.term_at(end - 1) == raft.term

    def _take_entries(self, prev: Index, entries: tuple[Entry, ...]) -> Index:
        """Keep what we have, cut what differs, append the rest; return how far we agree."""
        raft = self._raft
        for place, entry in enumerate(entries):
            if entry.end <= raft.commit or (
                entry.first < raft.end and raft.log.term_at(entry.first) == entry.term
            ):
                prev = entry.end
                continue
            # We agree up to `prev`. If the entry starts later there is a hole: compaction removed
            # what the leader once had there, and what we hold in its place may differ.
            cut = max(prev, raft.commit)
            if cut < raft.end:
                raft.cut(cut)
                self._matched = min(self._matched, cut)
            raft.add(entries[place:])
            return raft.end
        return prev

    def _take_commit(self, commit: Index) -> None:
        self._leader_commit = max(self._leader_commit, commit)
        reached = min(commit, self._matched)
        if reached > self._raft.commit:
            self._raft.advance_commit(reached)
        self.try_end_recovery()
