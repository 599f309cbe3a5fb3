"""Lets those go on who were woken by an event, at its end and not in its middle.

An event is one read from a connection, or one round of syncing that is done. What it commits wakes
handlers that wait. To let each go on through the loop would take several of its turns, each with a
call to the kernel (`bench/latency.py` counts them); to let it go on at once would run it inside of
what woke it, which is not finished. So it is put here and runs as the last thing of the event.
"""

import asyncio
from collections import deque
from collections.abc import Callable

ACTIONS_MAX = 1_000
"""Run at the end of one event; the others follow in the loop's next turn, after what came."""


class Turn:
    """What is still to be done in the event at hand; without one, in the loop's next turn."""

    __slots__ = ("_due", "_is_end_near")

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._is_end_near = False

    def begin(self) -> None:
        """Learn that an event begins; `end` must follow whatever happens in it."""
        self._is_end_near = True

    def soon(self, action: Callable[[], None]) -> None:
        """Do something at the end of this event, after what was put here before."""
        self._due.append(action)
        if not self._is_end_near:
            self._end_later()

    def end(self) -> None:
        """Do what is to be done, also what comes of that."""
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
