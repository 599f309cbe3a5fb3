"""A clean stop: every group that this broker leads is handed to an in-sync replica.

So no one must detect the loss of the broker: the next leaders are elected while the current one
still answers. Some groups are handed over per tick, because each refuses writes until its next
leader is elected. The time is bounded: remaining groups elect a leader as after a crash.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.config import RaftConfig
from kafkaesque.errors import RaftError
from kafkaesque.types import GroupId, NodeId


class HandOver:
    """Hands over until nothing is led here that others could lead, or the time is up."""

    def __init__(
        self,
        config: RaftConfig,
        order: Mapping[GroupId, Sequence[NodeId]],
        done: Callable[[], None],
    ) -> None:
        self.is_done = False
        self._config = config
        self._order = order
        self._done = done
        self._ticks = 0

    def tick(self, replicas: Iterable[Replica]) -> None:
        """Advance one tick."""
        self._ticks += 1
        led = [one for one in replicas if _could_go(one)]
        is_over = not led or self._ticks > self._config.hand_over_ticks
        if is_over and not self.is_done:
            self.is_done = True
            self._done()
        self._hand_over(led)  # also afterwards: another broker may just have returned a group

    def _hand_over(self, led: Sequence[Replica]) -> None:
        left = self._config.transfers_per_tick
        for replica in led:
            leadership = replica.raft.leadership
            assert leadership is not None
            if leadership.transferee is not None:
                left -= 1  # still in progress
            elif left > 0:
                replica.look_in_sync()
                left -= self._try(replica)
            if left <= 0:
                return

    def _try(self, replica: Replica) -> int:
        target = self._target(replica)
        if target is None:
            return 0
        try:
            replica.transfer(target)
        except RaftError:
            return 0  # a change of voters is in progress; retried later
        return 1

    def _target(self, replica: Replica) -> NodeId | None:
        """Return the in-sync replica that lacks least; among equals, the most preferred."""
        raft, in_sync = replica.raft, replica.in_sync
        if in_sync is None or raft.leadership is None:
            return None
        progress = raft.leadership.progress
        places = {node: place for place, node in enumerate(self._order.get(replica.group, ()))}
        found = [node for node in in_sync.nodes if node != raft.node]
        found.sort(key=lambda n: (-progress[n].match, places.get(n, len(places)), n))
        return found[0] if found else None


def _could_go(replica: Replica) -> bool:
    raft = replica.raft
    is_led = replica.error is None and raft.leadership is not None
    return is_led and any(node != raft.node for node in raft.voters.voters)
