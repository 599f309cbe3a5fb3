"""Since when brokers have been out of reach, as the leader of the catalog counts it.

A leader that has just been elected knows nothing of what was before: for it everybody's absence
begins at its first look. So a change of leader makes the wait longer, never shorter.
"""

from collections.abc import Collection

from kafkaesque.clock import Clock
from kafkaesque.types import NodeId


class Absences:
    """Who is away, and for how long; `look` is to be called regularly while we lead."""

    def __init__(self, node: NodeId, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._since_ms: dict[NodeId, int] = {}

    def look(self, brokers: Collection[NodeId], reachable: Collection[NodeId]) -> None:
        """Note who can be reached now; who is no broker any more is forgotten."""
        now_ms = self._clock.monotonic_ms()
        self._since_ms = {
            node: self._since_ms.get(node, now_ms)
            for node in brokers
            if node not in reachable and node != self._node
        }

    def is_live(self, node: NodeId) -> bool:
        """Whether a broker was there at the last look."""
        return node not in self._since_ms

    def absent_ms(self, node: NodeId) -> int:
        """Return for how long a broker has been away; 0 for one that is there."""
        since_ms = self._since_ms.get(node)
        return 0 if since_ms is None else self._clock.monotonic_ms() - since_ms

    def forget(self) -> None:
        """Forget everything: we lead no more."""
        self._since_ms.clear()
