"""Begins a handler at once, and lets it go on at the end of the event that it waited for.

Most requests never wait, and for those a task costs more than the handler itself: see
`bench/requests.py`. Those who wait for a commit wait for a `Moment`, which costs them no turn of
the loop: see `bench/latency.py`. Who waits for anything else becomes a task then. Before that a
handler runs outside of any task, so it must not use `asyncio.timeout`, which wants one
(`asyncio.wait` with a timeout does not).
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Generic, Protocol, TypeVar

from kafkaesque.server.turn import Turn

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")


class Moment(Generic[T]):
    """Something that comes once, with a value, and that one handler waits for.

    A handler that was begun here goes on in the same event; one that runs in a task goes on as it
    does with a future.
    """

    __slots__ = ("_value", "has_come", "wake")

    _value: T

    def __init__(self) -> None:
        self.has_come = False
        self.wake: Callable[[], None] | None = None
        """Called when it comes; for whoever runs the handler."""

    def come(self, value: T) -> None:
        """Let it come; only the first time counts."""
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
    """The answer to a request that was begun: a coroutine's, or one that needs none."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is waited for any more."""
        ...

    def when_done(self, callback: Callable[[], None], began: float) -> None:
        """Call back when it is done; it was begun at that time of the loop. Twice is as once."""
        ...

    def answer(self) -> T_co:
        """Return the answer of one that is done; raises what is a mistake of ours."""
        ...

    def cancel(self) -> None:
        """Let it come to no end: nobody wants to know any more."""
        ...


class Steps(Generic[T]):
    """A coroutine that was begun and waits, as an `Awaited`."""

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
        self._on_done: Callable[[], None] = _ignore
        self._coroutine = steps
        self._finish = finish
        self._turn = turn
        self._task: asyncio.Task[Any] | None = None
        self._wait(waited_for)

    def when_done(self, callback: Callable[[], None], began: float) -> None:
        """Call back when it is done; how long it waits is its own business."""
        self._on_done = callback

    def answer(self) -> T:
        """Return what the coroutine made, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def cancel(self) -> None:
        """Let it come to no end: nobody wants to know any more."""
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
        except Exception as error:  # noqa: BLE001  # kept for the one who began it
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
        except Exception as error:  # noqa: BLE001  # kept for the one who began it
            self._fail(error)
        else:
            self.is_done = True
            self._on_done()

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self.is_done = True
        self._on_done()


def begin(steps: Coroutine[Any, Any, V], turn: Turn, finish: Callable[[V], T]) -> "T | Steps[T]":
    """Run a coroutine until it waits or ends; return what goes on with it, or its result.

    `finish` makes the result of what the coroutine returns, now or later. Raises what it or the
    coroutine raises before that first waits.
    """
    try:
        waited_for = steps.send(None)
    except StopIteration as ended:
        value: V = ended.value
    else:
        return Steps(steps, waited_for, turn, finish)
    return finish(value)


async def _as_task(steps: Coroutine[Any, Any, T], waited_for: Any) -> T:
    """Drive a coroutine that already waits to its end; a task takes nothing but coroutines."""
    return await _go_on(steps, waited_for)


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


def _ignore() -> None:
    """Nobody waits for it yet."""
