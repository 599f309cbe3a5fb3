"""An answer that comes with a callback, or when the client's time is over; it needs no coroutine.

Many small requests may come at once, and a coroutine for each would cost as much as to append what
they bring (`bench/requests.py`).
"""

import asyncio
from collections.abc import Callable

from kafkaesque.server.waiting import WAIT_MS_MAX


class Pending:
    """What is done when `_end` was called: all of an `Awaited` but the answer itself."""

    __slots__ = ("_on_done", "_timeout_ms", "_timer", "is_done")

    def __init__(self, timeout_ms: int) -> None:
        self.is_done = False
        self._timeout_ms = timeout_ms
        self._on_done: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def when_done(self, callback: Callable[[], None], began: float) -> None:
        """Call back when all is decided, or the time that the client gave is over."""
        self._on_done = callback
        if self._timer is None:
            seconds = min(self._timeout_ms, WAIT_MS_MAX) / 1000
            self._timer = asyncio.get_running_loop().call_at(began + seconds, self._end)

    def cancel(self) -> None:
        """Tell nobody; what was appended stays."""
        self._on_done = None
        self._end()

    def _end(self) -> None:
        self.is_done = True
        if self._timer is not None:
            self._timer.cancel()
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done()
