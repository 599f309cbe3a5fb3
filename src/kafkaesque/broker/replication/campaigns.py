"""Elections after the loss of a broker: spread over ticks, best candidates first.

A lost broker may have led a thousand groups. If all of them asked for votes in one tick, that tick
would take so long that the next leaders looked dead as well; if each waited for its own random
timeout, replicas of one group would collide. So each broker queues its replicas of the groups that
lost their leader. The first reachable replica in the group's order of preference asks at once, each
further one somewhat later if there is still no leader, with a limit per tick. Replicas ask again,
because others may notice the loss later.

This only saves time: every replica keeps its own election timeout, on which safety and progress
rest.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.config import RaftConfig
from kafkaesque.raft.quorum import is_majority
from kafkaesque.raft.raft import Role
from kafkaesque.types import GroupId, NodeId

IsReachable = Callable[[NodeId], bool]


class Campaigns:
    """The groups of one broker that will ask for votes, and when."""

    def __init__(self, node: NodeId, config: RaftConfig, is_reachable: IsReachable) -> None:
        self._node = node
        self._config = config
        self._is_reachable = is_reachable
        self._ticks = 0
        self._serial = 0
        self._queue: list[tuple[int, int, GroupId, int]] = []
        """When, in which order, which group, and how many tries it has had."""

    def leader_lost(
        self, lost: NodeId, replicas: Iterable[Replica], order: Mapping[GroupId, Sequence[NodeId]]
    ) -> None:
        """Queue the replicas among these that followed a lost node."""
        orphans = [one for one in replicas if one.error is None and one.raft.leader == lost]
        config = self._config
        # Long enough to elect any candidate before us, on however many brokers: two that ask at the
        # same time may get one vote each, and then both must wait.
        pause = config.election_ticks // 2 + len(orphans) // config.campaigns_per_tick
        for replica in orphans:
            replica.raft.leader_gone()
            rank = self._rank(replica, order.get(replica.group, ()))
            if rank is not None:
                self._add(rank * pause, replica.group, 0)

    def tick(self, by_group: Mapping[GroupId, Replica]) -> None:
        """Advance one tick: replicas whose turn it is ask for votes unless they have a leader."""
        self._ticks += 1
        left = self._config.campaigns_per_tick
        while left and self._queue and self._queue[0][0] <= self._ticks:
            _, _, group, tries = heapq.heappop(self._queue)
            replica = by_group.get(group)
            if replica is None or not self._may_ask(replica):
                continue
            left -= 1
            replica.campaign()
            if tries < self._config.campaigns_again_max:
                self._add(self._config.heartbeat_ticks, group, tries + 1)

    def _may_ask(self, replica: Replica) -> bool:
        raft = replica.raft
        if replica.error is not None or raft.leader is not None or raft.role is Role.CANDIDATE:
            return False
        there = [n for n in raft.voters.voters if n == self._node or self._is_reachable(n)]
        return is_majority(there, raft.voters.voters)

    def _rank(self, replica: Replica, order: Sequence[NodeId]) -> int | None:
        """Return how many reachable voters come before us; None if we are not a voter."""
        voters = replica.raft.voters.voters
        if self._node not in voters:
            return None
        places = {node: place for place, node in enumerate(order)}
        there = [n for n in voters if n == self._node or self._is_reachable(n)]
        there.sort(key=lambda node: (places.get(node, len(places)), node))
        return there.index(self._node)

    def _add(self, delay: int, group: GroupId, tries: int) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (self._ticks + delay, self._serial, group, tries))
