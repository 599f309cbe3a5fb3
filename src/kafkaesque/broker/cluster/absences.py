"""How long brokers have been unreachable, as the catalog's leader counts it.

A newly elected leader knows nothing of the past: it counts every absence from its own first look.
So a change of leader makes the wait longer, never shorter.
"""

from collections.abc import Collection

from kafkaesque.clock import Clock
from kafkaesque.types import NodeId


class Absences:
    """Which brokers are unreachable, and for how long; call `look` regularly while we lead."""

    def __init__(self, node: NodeId, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._since_ms: dict[NodeId, int] = {}

    def look(self, brokers: Collection[NodeId], reachable: Collection[NodeId]) -> None:
        """Note which brokers are reachable now; forget those that are no longer brokers."""
        now_ms = self._clock.monotonic_ms()
        self._since_ms = {
            node: self._since_ms.get(node, now_ms)
            for node in brokers
            if node not in reachable and node != self._node
        }

    def is_live(self, node: NodeId) -> bool:
        """Whether a broker was reachable at the last look."""
        return node not in self._since_ms

    def absent_ms(self, node: NodeId) -> int:
        """Return how long a broker has been unreachable; 0 if it is reachable."""
        since_ms = self._since_ms.get(node)
        return 0 if since_ms is None else self._clock.monotonic_ms() - since_ms

    def forget(self) -> None:
        """Forget everything: we no longer lead."""
        self._since_ms.clear()
