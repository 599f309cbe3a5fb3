"""Waits until partitions have leaders: a topic's creator wants to use it right away."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.partition.partition_errors import NotHere
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.leader_table import Leaders
from kafkaesque.types import GroupId, NodeId

Slot: TypeAlias = Partition | PartitionOffline | NotHere
"""One of a topic's partitions, or the reason why this broker cannot serve it."""

TICKS_MAX = 60
"""Other brokers may be down for long: a wait for their leaders lasts at most some elections."""

VACANT_TICKS_MAX = 40
"""Two elections in a row: a group without a leader by then may have none for hours."""


class _Wait:
    def __init__(
        self, slots: Iterable[tuple[GroupId, Slot | None]], then: Callable[[], None]
    ) -> None:
        self.slots = deque(slots)
        self.then = then
        self.ticks = 0


class ServingWaits:
    """One broker's waits; each waits for the first of its partitions that has no leader."""

    def __init__(self, leaders: Leaders, is_reachable: Callable[[NodeId], bool]) -> None:
        self._leaders = leaders
        self._is_reachable = is_reachable
        self._waits: dict[GroupId, list[_Wait]] = {}
        self._ticks = 0
        self._vacant: dict[GroupId, int] = {}
        """Since when groups that were waited for have had no reachable leader."""

    def until_served(self, slots: Iterable[tuple[GroupId, Slot]], then: Callable[[], None]) -> None:
        """Call back once each has a leader, or when that cannot be expected soon."""
        self._look(_Wait(slots, then))

    def until_led(self, groups: Iterable[GroupId], then: Callable[[], None]) -> None:
        """Call back once each of these has a reachable leader.

        A group that has had none for long is not waited for, however often it is requested: so
        clients that keep asking lose a moment after a failure, and nothing afterwards.
        """
        self._look(_Wait([(group, None) for group in groups], then))

    def tick(self) -> None:
        """Advance one tick."""
        self._ticks += 1
        for group in [group for group in self._vacant if self._is_led(group)]:
            del self._vacant[group]
        for group in list(self._waits):
            for wait in self._waits.get(group, ()):
                wait.ticks += 1
            self.changed(group)

    def changed(self, group: GroupId) -> None:
        """Note that a group may have a new leader, and end the waits that this settles."""
        if group not in self._leaders.known:  # its topic was deleted
            self._vacant.pop(group, None)
        for wait in self._waits.pop(group, ()):
            self._look(wait)

    def _look(self, wait: _Wait) -> None:
        while wait.slots and self._is_decided(*wait.slots[0], wait.ticks):
            wait.slots.popleft()
        if wait.slots:
            self._waits.setdefault(wait.slots[0][0], []).append(wait)
        else:
            wait.then()

    def _is_decided(self, group: GroupId, slot: Slot | None, ticks: int) -> bool:
        if slot is None:
            if self._is_led(group):
                self._vacant.pop(group, None)
                return True
            return self._ticks - self._vacant.setdefault(group, self._ticks) >= VACANT_TICKS_MAX
        if self._leaders.of(group).node is not None:
            return True
        if isinstance(slot, Partition):
            replica = slot.replica
            if replica.error is not None:
                return True
            is_alone = replica.raft.voters.voters == (replica.raft.node,)
            return not is_alone and ticks >= TICKS_MAX
        return isinstance(slot, PartitionOffline) or ticks >= TICKS_MAX

    def _is_led(self, group: GroupId) -> bool:
        """Whether a group has a leader, and not one that has just failed."""
        node = self._leaders.of(group).node
        return node is not None and self._is_reachable(node)
