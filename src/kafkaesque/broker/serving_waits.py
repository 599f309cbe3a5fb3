"""Those who wait until partitions have leaders: whoever creates a topic wants to use it then."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kafkaesque.broker.leaders import Leaders
from kafkaesque.broker.partition import Partition
from kafkaesque.errors import NotHere, PartitionOffline
from kafkaesque.types import GroupId, NodeId

Slot: TypeAlias = Partition | PartitionOffline | NotHere
"""One of a topic's partitions, or what keeps it from being used on this broker."""

TICKS_MAX = 60
"""Other brokers may be down for long: nobody waits for their leaders longer than some elections."""

VACANT_TICKS_MAX = 40
"""Two elections one after the other: who has no leader for longer may have none for hours."""


class _Wait:
    def __init__(
        self, slots: Iterable[tuple[GroupId, Slot | None]], then: Callable[[], None]
    ) -> None:
        self.slots = deque(slots)
        self.then = then
        self.ticks = 0


class ServingWaits:
    """Everyone who waits on one broker, each for the first of its partitions without a leader."""

    def __init__(self, leaders: Leaders, is_reachable: Callable[[NodeId], bool]) -> None:
        self._leaders = leaders
        self._is_reachable = is_reachable
        self._waits: dict[GroupId, list[_Wait]] = {}
        self._ticks = 0
        self._vacant: dict[GroupId, int] = {}
        """Since when groups have no leader that is there, of those that were waited for."""

    def until_served(self, slots: Iterable[tuple[GroupId, Slot]], then: Callable[[], None]) -> None:
        """Call back once each of these has a leader, or nobody knows when it will."""
        self._look(_Wait(slots, then))

    def until_led(self, groups: Iterable[GroupId], then: Callable[[], None]) -> None:
        """Call back once each of these has a leader that is there.

        One that has none for long is not waited for, however often it is asked for: so those who
        ask again and again lose a moment after a failure, and nothing afterwards.
        """
        self._look(_Wait([(group, None) for group in groups], then))

    def tick(self) -> None:
        """Let a tick pass."""
        self._ticks += 1
        for group in [group for group in self._vacant if self._is_led(group)]:
            del self._vacant[group]
        for group in list(self._waits):
            for wait in self._waits.get(group, ()):
                wait.ticks += 1
            self.changed(group)

    def changed(self, group: GroupId) -> None:
        """Learn that a group may have another leader: see who need not wait for it any longer."""
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
        """Whether a group has a leader, and not one that has just died."""
        node = self._leaders.of(group).node
        return node is not None and self._is_reachable(node)
