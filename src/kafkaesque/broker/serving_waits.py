"""Those who wait until partitions have leaders: whoever creates a topic wants to use it then."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kafkaesque.broker.leaders import Leaders
from kafkaesque.broker.partition import Partition
from kafkaesque.errors import NotHere, PartitionOffline
from kafkaesque.types import GroupId

Slot: TypeAlias = Partition | PartitionOffline | NotHere
"""One of a topic's partitions, or what keeps it from being used on this broker."""

TICKS_MAX = 60
"""Other brokers may be down for long: nobody waits for their leaders longer than some elections."""


class _Wait:
    def __init__(self, slots: Iterable[tuple[GroupId, Slot]], then: Callable[[], None]) -> None:
        self.slots = deque(slots)
        self.then = then
        self.ticks = 0


class ServingWaits:
    """Everyone who waits on one broker, each for the first of its partitions without a leader."""

    def __init__(self, leaders: Leaders) -> None:
        self._leaders = leaders
        self._waits: dict[GroupId, list[_Wait]] = {}

    def until_served(self, slots: Iterable[tuple[GroupId, Slot]], then: Callable[[], None]) -> None:
        """Call back once each of these has a leader, or nobody knows when it will."""
        self._look(_Wait(slots, then))

    def tick(self) -> None:
        """Let a tick pass."""
        for group in list(self._waits):
            for wait in self._waits.get(group, ()):
                wait.ticks += 1
            self.changed(group)

    def changed(self, group: GroupId) -> None:
        """Learn that a group may have another leader: see who need not wait for it any longer."""
        for wait in self._waits.pop(group, ()):
            self._look(wait)

    def _look(self, wait: _Wait) -> None:
        while wait.slots and self._is_decided(*wait.slots[0], wait.ticks):
            wait.slots.popleft()
        if wait.slots:
            self._waits.setdefault(wait.slots[0][0], []).append(wait)
        else:
            wait.then()

    def _is_decided(self, group: GroupId, slot: Slot, ticks: int) -> bool:
        if self._leaders.of(group).node is not None:
            return True
        if isinstance(slot, Partition):
            replica = slot.replica
            if replica.error is not None:
                return True
            is_alone = replica.raft.voters.voters == (replica.raft.node,)
            return not is_alone and ticks >= TICKS_MAX
        return isinstance(slot, PartitionOffline) or ticks >= TICKS_MAX
