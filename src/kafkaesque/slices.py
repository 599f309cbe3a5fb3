"""Long work in short slices, so that no event waits for all of it.

Work is a generator: it yields after each slice of about a millisecond, and returns its result.
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from kafkaesque.callbacks import ignore

T = TypeVar("T")

Sliced: TypeAlias = Generator[None, None, T]
"""Work that yields after each slice; close it to abandon the work."""


def whole(work: Sliced[T]) -> T:
    """Run all slices at once and return the result."""
    while True:  # ends: the work does
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


class Slices:
    """The sliced work of one broker.

    The driver sets `on_wanted` and, after each call of it, calls `run` once, after the queued
    events. Urgent work takes turns. Background work waits until no urgent work is left, and runs
    one item at a time, so that only one needs memory.
    """

    def __init__(self) -> None:
        self.on_wanted: Callable[[], None] = ignore
        """Called when `run` has something to do, once until the next `run`."""
        self._is_wanted = False
        self._urgent: deque[Sliced[None]] = deque()
        self._background: deque[Sliced[None]] = deque()

    def begin(self, work: Sliced[None]) -> None:
        """Run the first slice of urgent work now, and the others between events."""
        self._go_on(work, self._urgent.append)
        self._want()

    def queue(self, work: Sliced[None]) -> None:
        """Queue background work to run between events."""
        self._background.append(work)
        self._want()

    def run(self) -> None:
        """Run one slice."""
        self._is_wanted = False
        if self._urgent:
            self._go_on(self._urgent.popleft(), self._urgent.append)
        elif self._background:
            self._go_on(self._background.popleft(), self._background.appendleft)
        self._want()

    @property
    def has_work(self) -> bool:
        """Whether `run` has something to do."""
        return bool(self._urgent or self._background)

    def _go_on(self, work: Sliced[None], put_back: Callable[[Sliced[None]], None]) -> None:
        try:
            next(work)
        except StopIteration:
            return
        put_back(work)

    def _want(self) -> None:
        if self.has_work and not self._is_wanted:
            self._is_wanted = True
            self.on_wanted()
