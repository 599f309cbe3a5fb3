"""Starts a handler at once, and resumes it at the end of the event that it waited for.

Most requests never wait, and a task would cost more than their handler: see `bench/requests.py`.
Handlers that wait for a commit wait for a `Moment`, which costs no loop iteration: see
`bench/latency.py`. A handler that waits for anything else becomes a task then. Until then it runs
outside of any task, so it must not use `asyncio.timeout`, which needs one (`asyncio.wait` with a
timeout does not).
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Generic, Protocol, TypeVar

from kafkaesque.callbacks import ignore
from kafkaesque.server.requests.event_queue import Turn

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")


class Moment(Generic[T]):
    """A one-time event with a value, for one waiting handler.

    A handler that was started here resumes in the same event; one in a task resumes as from a
    future.
    """

    __slots__ = ("_value", "has_come", "wake")

    _value: T

    def __init__(self) -> None:
        self.has_come = False
        self.wake: Callable[[], None] | None = None
        """Called when it comes; set by the handler's runner."""

    def come(self, value: T) -> None:
        """Set the value; only the first call counts."""
        if self.has_come:
            return
        self.has_come = True
        self._value = value
        if self.wake is not None:
            self.wake()

    def __await__(self) -> Generator[Any, None, T]:
        if not self.has_come:
            if asyncio.current_task() is None:
                yield self
            else:
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self.wake = lambda: None if future.done() else future.set_result(None)
                yield from future
        return self._value


class Awaited(Protocol[T_co]):
    """The pending response to a started request, from a coroutine or without one."""

    @property
    def is_done(self) -> bool:
        """Whether the response is ready."""
        ...

    def when_done(self, callback: Callable[[], None], began: float) -> None:
        """Call back once done; `began` is its start by the loop's clock. Idempotent."""
        ...

    def answer(self) -> T_co:
        """Return the response once done; raises internal errors."""
        ...

    def cancel(self) -> None:
        """Abandon it: the response is no longer needed."""
        ...


class Steps(Generic[T]):
    """A started coroutine that waits, as an `Awaited`."""

    __slots__ = (
        "_coroutine",
        "_error",
        "_finish",
        "_on_done",
        "_result",
        "_task",
        "_turn",
        "is_done",
    )

    _result: T
    is_done: bool

    def __init__(
        self,
        steps: Coroutine[Any, Any, Any],
        waited_for: Any,
        turn: Turn,
        finish: Callable[[Any], T],
    ) -> None:
        self.is_done = False
        self._error: BaseException | None = None
        self._on_done: Callable[[], None] = ignore
        self._coroutine = steps
        self._finish = finish
        self._turn = turn
        self._task: asyncio.Task[Any] | None = None
        self._wait(waited_for)

    def when_done(self, callback: Callable[[], None], began: float) -> None:
        """Call back once done; it sets its own timeout."""
        self._on_done = callback

    def answer(self) -> T:
        """Return the coroutine's result, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._result

    def cancel(self) -> None:
        """Abandon it: the response is no longer needed."""
        if self._task is not None:
            self._task.cancel()
        elif not self.is_done:
            self.is_done = True
            self._coroutine.close()

    def _wait(self, waited_for: Any) -> None:
        if isinstance(waited_for, Moment):
            waited_for.wake = self._woken
            return
        self._task = asyncio.Task(_as_task(self._coroutine, waited_for))
        self._task.add_done_callback(self._task_done)

    def _woken(self) -> None:
        self._turn.soon(self._step)

    def _step(self) -> None:
        if self.is_done:  # cancelled meanwhile
            return
        try:
            waited_for = self._coroutine.send(None)
        except StopIteration as ended:
            self._end(ended.value)
        except Exception as error:  # noqa: BLE001  # kept for the caller
            self._fail(error)
        else:
            self._wait(waited_for)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self._end(task.result())
        else:
            self._fail(error)

    def _end(self, value: Any) -> None:
        try:
            self._result = self._finish(value)
        except Exception as error:  # noqa: BLE001  # kept for the caller
            self._fail(error)
        else:
            self.is_done = True
            self._on_done()

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self.is_done = True
        self._on_done()


def begin(steps: Coroutine[Any, Any, V], turn: Turn, finish: Callable[[V], T]) -> "T | Steps[T]":
    """Run a coroutine until it waits or ends; return its continuation or its result.

    `finish` converts the coroutine's return value into the result, now or later. Raises what
    `finish` or the coroutine raises before its first wait.
    """
    try:
        waited_for = steps.send(None)
    except StopIteration as ended:
        value: V = ended.value
    else:
        return Steps(steps, waited_for, turn, finish)
    return finish(value)


async def _as_task(steps: Coroutine[Any, Any, T], waited_for: Any) -> T:
    """Run a waiting coroutine to its end; a task accepts only coroutines."""
    return await _go_on(steps, waited_for)


@coroutine
def _go_on(steps: Coroutine[Any, Any, T], waited_for: Any) -> Generator[Any, Any, T]:
    """Wait for what a coroutine waits for, and run it to its end."""
    while True:  # ends with the coroutine
        try:
            try:
                value = yield waited_for
            except BaseException as error:  # noqa: BLE001  # a cancellation goes to the coroutine
                waited_for = steps.throw(error)
            else:
                waited_for = steps.send(value)
        except StopIteration as ended:
            result: T = ended.value
            return result
