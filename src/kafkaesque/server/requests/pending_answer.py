"""A response that arrives by callback or at the client's timeout, without a coroutine.

Many small requests may arrive at once, and a coroutine for each would cost as much as appending
their records (`bench/requests.py`).
"""

import asyncio
from collections.abc import Callable

from kafkaesque.server.requests.callback_waits import WAIT_MS_MAX


class Pending:
    """An `Awaited` that is done once `_end` is called; only the response is missing."""

    __slots__ = ("_on_done", "_timeout_ms", "_timer", "is_done")

    def __init__(self, timeout_ms: int) -> None:
        self.is_done = False
        self._timeout_ms = timeout_ms
        self._on_done: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def when_done(self, callback: Callable[[], None], began: float) -> None:
        """Call back when the outcome is known, or at the client's timeout."""
        self._on_done = callback
        if self._timer is None:
            seconds = min(self._timeout_ms, WAIT_MS_MAX) / 1000
            self._timer = asyncio.get_running_loop().call_at(began + seconds, self._end)

    def cancel(self) -> None:
        """Cancel the callback; appended records stay."""
        self._on_done = None
        self._end()

    def _end(self) -> None:
        self.is_done = True
        if self._timer is not None:
            self._timer.cancel()
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done()
