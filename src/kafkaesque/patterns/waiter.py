"""A future whose task goes on at once."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


class Waiter(asyncio.Future[T]):
    """A future for one task, which goes on within the call that brings the result.

    With asyncio's own it goes on in the loop's next turn. Between two turns the loop gives up the
    interpreter, and gets it back late from the threads that poll librdkafka.
    """

    __slots__ = ("_waiting",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._waiting: tuple[Callable[[Any], object], Context] | None = None

    def add_done_callback(
        self, fn: Callable[[Any], object], /, *, context: Context | None = None
    ) -> None:
        """Remember the task that waits: asyncio calls this when one does."""
        if context is not None:
            self._waiting = fn, context
        super().add_done_callback(fn, context=context)

    def bring(self, result: T) -> None:
        """Set the result and run the task that waits; for callbacks of the loop, not for tasks."""
        if self._waiting is None:
            self.set_result(result)
            return
        go_on, context = self._waiting
        self.remove_done_callback(go_on)
        self.set_result(result)
        context.run(go_on, self)

    async def within(self, seconds: float) -> T:
        """Return the result; raises TimeoutError if it does not come so soon.

        This costs a third of what `asyncio.timeout` does.
        """
        timer = self.get_loop().call_later(seconds, self._expire)
        try:
            return await self
        finally:
            timer.cancel()

    def _expire(self) -> None:
        if not self.done():
            self.set_exception(TimeoutError())
