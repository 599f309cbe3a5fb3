"""Simulated time: clocks, and the schedule of coming events.

Events at the same time run in the order in which they were scheduled, so a run depends on its seed
alone.
"""

import heapq
from collections.abc import Callable

_STEPS_AT_ONCE = 20
_EPOCH_MS = 1_700_000_000_000


class WorldClock:
    """The simulated time, as nodes read it."""

    def __init__(self) -> None:
        self.time = 0

    def now_ms(self) -> int:
        """Return the wall clock."""
        return _EPOCH_MS + self.time

    def monotonic_ms(self) -> int:
        """Return the monotonic clock."""
        return self.time


class NodeClock:
    """The time as one machine reads it: its wall clock may be wrong, and may jump."""

    def __init__(self, world: WorldClock) -> None:
        self.ahead_ms = 0
        self._world = world

    def now_ms(self) -> int:
        """Return the wall clock of this machine."""
        return self._world.now_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        """Return the monotonic clock."""
        return self._world.monotonic_ms()


class Schedule:
    """The clock and the events of one world.

    A *step* is an event that reaches a node: a message delivered, a tick, a sync done.
    """

    def __init__(self) -> None:
        self.clock = WorldClock()
        self.steps = 0
        self.counts: dict[str, int] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0

    def schedule(self, delay: int, callback: Callable[[], None]) -> None:
        """Schedule a callback."""
        heapq.heappush(self._events, (self.clock.time + delay, self.next_serial(), callback))

    def next_serial(self) -> int:
        """Return a unique number."""
        self._serial += 1
        return self._serial

    def step(self) -> None:
        """Run the next event."""
        time, _, callback = heapq.heappop(self._events)
        self.clock.time = time
        callback()

    def run(self, steps: int) -> None:
        """Run this many steps; raises Violation."""
        end = self.steps + steps
        while self.steps < end:
            self.step()

    def run_until(self, is_done: Callable[[], bool], steps_max: int) -> bool:
        """Run until `is_done`; return whether it was within about `steps_max` events."""
        for _ in range(0, steps_max, _STEPS_AT_ONCE):
            if is_done():
                return True
            for _ in range(_STEPS_AT_ONCE):
                self.step()
        return is_done()

    def count(self, kind: str) -> None:
        """Count something for the table at the end."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
