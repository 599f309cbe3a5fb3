"""Which replicas of a group are in sync, as its leader sees it: soft state, in no log.

A voter is in sync while it answers, its node is reachable, and it keeps up: it was level with the
leader a bounded time ago, and lacks a bounded number of entries now. A leader starts with itself
alone, and adds each voter that has reached the opening of its term.

Time is counted in the leadership's ticks. A resting group has none, and needs none: it rests only
while all members have everything, and wakes when a member's node falls silent.
"""

from collections.abc import Callable

from msgspec import Struct

from kafkaesque.config import RaftConfig
from kafkaesque.raft.leadership import Leadership
from kafkaesque.raft.progress import Progress
from kafkaesque.raft.quorum import majority
from kafkaesque.raft.raft import Raft
from kafkaesque.types import Index, NodeId

_NEVER = -1


class _Level(Struct):
    """When a follower was last level with its leader."""

    goal: Index
    """Where the leader's log ended at `goal_tick`: a follower that gets there was level then."""

    goal_tick: int
    level_tick: int = _NEVER


class InSync:
    """The in-sync replicas of one leadership; `look` updates it."""

    def __init__(
        self, raft: Raft, leadership: Leadership, is_reachable: Callable[[NodeId], bool]
    ) -> None:
        self.nodes: tuple[NodeId, ...] = (raft.node,)
        """The nodes in sync, sorted."""
        self.is_cut_off = False
        """Whether no majority is reachable: nothing is committed while this holds."""
        self._raft = raft
        self._config: RaftConfig = raft.config
        self._leadership = leadership
        self._is_reachable = is_reachable
        self._levels: dict[NodeId, _Level] = {}
        self.look()

    def look(self) -> bool:
        """Check all voters; return whether the in-sync replicas have changed."""
        raft, progress = self._raft, self._leadership.progress
        voters = raft.voters.voters
        reachable = [
            node for node in voters if node == raft.node or self._is_there(node, progress[node])
        ]
        self.is_cut_off = len(reachable) < majority(len(voters))
        nodes = tuple(
            node for node in reachable if node == raft.node or self._keeps_up(node, progress[node])
        )
        has_changed = nodes != self.nodes
        self.nodes = nodes
        return has_changed

    def _is_there(self, node: NodeId, progress: Progress) -> bool:
        silence = self._leadership.ticks - progress.answered_at
        return silence <= self._config.election_ticks and self._is_reachable(node)

    def _keeps_up(self, node: NodeId, progress: Progress) -> bool:
        now, end = self._leadership.ticks, self._raft.end
        level = self._levels.get(node)
        if level is None:
            level = self._levels[node] = _Level(goal=self._leadership.opened_at + 1, goal_tick=now)
        if progress.match >= end:
            level.level_tick = now
        elif progress.match >= level.goal:
            level.level_tick = max(level.level_tick, level.goal_tick)
        if progress.match >= level.goal:
            level.goal, level.goal_tick = end, now
        if level.level_tick == _NEVER:
            return False
        is_recent = now - level.level_tick <= self._config.lag_ticks_max
        return is_recent and end - progress.match <= self._config.lag_entries_max
