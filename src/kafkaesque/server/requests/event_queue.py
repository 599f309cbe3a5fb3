"""Runs deferred callbacks after the current I/O event.

An event is one read from a connection, or one completed sync round. What it commits wakes waiting
handlers. Resuming each through the loop would take several loop iterations, each with a system call
(`bench/latency.py` counts them); resuming it at once would run it inside the unfinished code that
woke it. So it is queued here and runs as the last step of the event.
"""

import asyncio
from collections import deque
from collections.abc import Callable

ACTIONS_MAX = 1_000
"""Run at the end of one event; the others follow in the next loop iteration, after new events."""


class Turn:
    """Callbacks due in the current event; without one, in the next loop iteration."""

    __slots__ = ("_due", "_is_end_near")

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._is_end_near = False

    def begin(self) -> None:
        """Mark the start of an event; `end` must follow whatever happens in it."""
        self._is_end_near = True

    def soon(self, action: Callable[[], None]) -> None:
        """Queue a callback for the end of this event, after those already queued."""
        self._due.append(action)
        if not self._is_end_near:
            self._end_later()

    def end(self) -> None:
        """Run the queued callbacks, including those that they queue."""
        due = self._due
        try:
            for _ in range(ACTIONS_MAX):
                if not due:
                    break
                due.popleft()()
        finally:
            self._is_end_near = False
            if due:
                self._end_later()

    def _end_later(self) -> None:
        self._is_end_near = True
        asyncio.get_running_loop().call_soon(self.end)
