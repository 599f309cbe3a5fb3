"""The simulated network: delays, drops, duplicates, reorders, and can be cut, one way or both.

Normally bytes take no time. With `ways` they do, and messages queue up (`sim/narrow.py`).
"""

import random
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from kafkaesque.sim.settings import NetworkFaults
from kafkaesque.types import GroupId, NodeId

_LATE_FACTOR = 20


class Addressed(Protocol):
    """Anything the network can carry: it has a source and a target."""

    @property
    def source(self) -> NodeId:
        """The sender."""
        ...

    @property
    def target(self) -> NodeId:
        """The receiver."""
        ...


Carried = TypeVar("Carried", bound=Addressed)
_Carried = TypeVar("_Carried", bound=Addressed, contravariant=True)


class Ways(Protocol[_Carried]):
    """Connections between nodes on which bytes take time."""

    def send(self, group: GroupId, message: _Carried) -> None:
        """Accept a message and deliver it in its turn."""
        ...

    def is_sending(self, group: GroupId, source: NodeId, target: NodeId) -> bool:
        """Return whether a bulky message of a group still waits to be written."""
        ...

    def cut(self, source: NodeId, target: NodeId) -> None:
        """Lose everything in flight from one node to another."""
        ...


class Network(Generic[Carried]):
    """Carries messages between nodes through the world's schedule."""

    def __init__(
        self,
        faults: NetworkFaults,
        chance: random.Random,
        schedule: Callable[[int, Callable[[], None]], object],
        deliver: Callable[[GroupId, Carried], None],
        ways: Ways[Carried] | None = None,
    ) -> None:
        self.faults = faults
        self.sent = 0
        self.dropped = 0
        self._chance = chance
        self._schedule = schedule
        self._deliver = deliver
        self._ways = ways
        self._cuts: set[tuple[NodeId, NodeId]] = set()

    def send(self, group: GroupId, message: Carried) -> None:
        """Accept a message and deliver it later, perhaps twice, perhaps never."""
        self.sent += 1
        faults, chance = self.faults, self._chance
        if self._cuts and (message.source, message.target) in self._cuts:
            self.dropped += 1
            return
        if faults.drop_rate and chance.random() < faults.drop_rate:
            self.dropped += 1
            return
        self._carry(group, message)
        if faults.duplicate_rate and chance.random() < faults.duplicate_rate:
            self._carry(group, message)

    def cut(self, source: NodeId, target: NodeId) -> None:
        """Block everything from `source` to `target`; the other direction is a separate cut."""
        self._cuts.add((source, target))
        if self._ways is not None:
            self._ways.cut(source, target)

    def is_sending(self, group: GroupId, source: NodeId, target: NodeId) -> bool:
        """Return whether a bulky message of a group still waits to be written to a node."""
        return self._ways is not None and self._ways.is_sending(group, source, target)

    def heal(self) -> None:
        """Heal every cut."""
        self._cuts.clear()

    def _carry(self, group: GroupId, message: Carried) -> None:
        if self._ways is not None:
            self._ways.send(group, message)
            return
        delay = 1 + int(self._chance.random() * self.faults.delay_max)
        if self.faults.late_rate and self._chance.random() < self.faults.late_rate:
            delay *= _LATE_FACTOR
        self._schedule(delay, lambda: self._deliver(group, message))
