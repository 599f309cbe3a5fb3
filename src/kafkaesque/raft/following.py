"""What only a follower does: take a leader's entries, commits and starts, and answer for them.

It knows how far the log agrees with the present leader's, and forgets that with the leader.
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
        """Up to here our log is known to agree with the present leader's."""
        self._leader_commit: Index = 0
        self._goal: Index = 0
        """What a recovering replica must hold before it votes; 0 before its leader told of it."""

    def forget_leader(self) -> None:
        """What is committed agrees with every leader's log; of the rest we know nothing now."""
        self._matched = self._raft.commit
        self._leader_commit = self._goal = 0

    def take_append(self, request: AppendRequest) -> None:
        """Take entries, or say that they do not fit."""
        raft = self._raft
        prev = request.prev_end
        # Everything committed agrees with every leader, so it needs no comparison (and, once
        # trimmed, allows none).
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
        """Learn how far the leader has committed, and show that we are alive.

        A leader counts only what we said to be durable, in this term, and within a term what agrees
        with its leader is never cut. So if it counts more than we have, our disk has lost it. An
        old or repeated heartbeat cannot mislead us: it counts less.
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
        """Begin anew at `start`, unless our log reaches there and agrees."""
        raft = self._raft
        has_it = self.has(start)
        if not has_it:
            raft.begin_anew(start)
        self._matched = max(self._matched, start.index)
        # A start lies below the leader's commit, so it is committed; how far the leader really
        # is, which a recovering replica must know, the next append will tell.
        raft.advance_commit(max(raft.commit, start.index))
        if has_it:
            self.accept()

    def accept(self) -> None:
        """Tell the leader how far we agree and are durable."""
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
        """What to tell the leader of our commit: nothing, while our vote counts for nothing.

        So the leader knows when one that was refilled may be given a vote, and lets the group have
        ticks until then.
        """
        return 0 if self._raft.is_recovering else self._raft.commit

    def try_end_recovery(self) -> None:
        """A replica that lost synced data votes again when it has all that a leader committed.

        That is what the leader had committed when it first told of it: under load its commit is
        always ahead of ours. It counts only once it covers an entry of the leader's own term:
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
        """Whether the last entry before `end`, which our log holds, is of the leader's own term."""
        raft = self._raft
        return end >= max(1, raft.log.start.index) and raft.log.term_at(end - 1) == raft.term

    def _take_entries(self, prev: Index, entries: tuple[Entry, ...]) -> Index:
        """Keep what we have, cut what differs, append what is new; return how far we agree."""
        raft = self._raft
        for place, entry in enumerate(entries):
            if entry.end <= raft.commit or (
                entry.first < raft.end and raft.log.term_at(entry.first) == entry.term
            ):
                prev = entry.end
                continue
            # We agree up to `prev`. If the entry begins later there is a hole: compaction removed
            # what the leader once had there, and what we hold in its place may differ from it.
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
