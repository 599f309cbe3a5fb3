"""Begins a handler at once, and makes a task of it only if it really waits.

Most requests never wait, and for those a task costs more than the handler itself: see
`bench/requests.py`. Python 3.12 has such tasks of its own. In 3.11 the first step runs outside of
any task, so until a handler first waits it must not use `asyncio.timeout`, which wants one
(`asyncio.wait` with a timeout does not).
"""

import asyncio
import sys
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def begin(steps: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> "T | asyncio.Task[T]":
    """Run a coroutine until it waits or ends; return its result, or the task that goes on.

    Raises what the coroutine raises before it first waits.
    """
    if sys.version_info >= (3, 12):
        task = asyncio.Task(steps, loop=loop, eager_start=True)
        return task.result() if task.done() else task
    try:
        waited_for = steps.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    return asyncio.Task(_go_on(steps, waited_for), loop=loop)


@coroutine
def _go_on(steps: Coroutine[Any, Any, T], waited_for: Any) -> Generator[Any, Any, T]:
    """Wait for what a coroutine waits for, and drive it on to its end."""
    while True:  # ends with the coroutine
        try:
            try:
                value = yield waited_for
            except BaseException as error:  # noqa: BLE001  # a cancellation is for the coroutine
                waited_for = steps.throw(error)
            else:
                waited_for = steps.send(value)
        except StopIteration as ended:
            result: T = ended.value
            return result
