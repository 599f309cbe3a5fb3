"""Log changes in several steps, which wait for durability or disk space in between.

An *operation* is a generator that runs one step and yields what it waits for. Operations run in
order, one at a time; everything after one waits in memory.
"""

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import TypeAlias

from kafkaesque.errors import LogError


class Wait(Enum):
    """What an operation waits for: a round of the flusher, or room on the disk."""

    ROUND = auto()
    ROOM = auto()


Operation: TypeAlias = Iterator[Wait]

_DONE = object()


class Operations:
    """The operations of one log. Its callbacks ask for rounds and room; `failed` ends them all."""

    def __init__(
        self,
        *,
        needs_round: Callable[[], None],
        needs_room: Callable[[Callable[[], None]], None],
        failed: Callable[[LogError], None],
    ) -> None:
        self._needs_round = needs_round
        self._needs_room = needs_room
        self._failed = failed
        self._queue: deque[Operation] = deque()
        self._is_waiting = False
        self._is_waiting_for_room = False
        self._is_waiting_for_this_round = False

    def __bool__(self) -> bool:
        return bool(self._queue)

    def begin(self, operation: Operation) -> None:
        """Run the first step now, or after the operations before it."""
        self._queue.append(operation)
        if not self._is_waiting:
            self._advance()

    def round_begins(self) -> None:
        """Handle the start of a round: operations already waiting resume when it is done."""
        self._is_waiting_for_this_round = self._is_waiting and not self._is_waiting_for_room

    def round_done(self) -> None:
        """Resume the operation that was waiting when the round started."""
        if self._is_waiting_for_this_round:
            self._is_waiting = self._is_waiting_for_this_round = False
            self._advance()

    def clear(self) -> None:
        """Drop all operations."""
        self._queue.clear()

    def _room_again(self) -> None:
        if self._is_waiting_for_room:
            self._is_waiting = self._is_waiting_for_room = False
            self._advance()

    def _advance(self) -> None:
        """Run operations until one must wait, or all are done."""
        try:
            while self._queue:
                wait = next(self._queue[0], _DONE)
                if wait is not _DONE:
                    self._is_waiting = True
                    self._is_waiting_for_room = wait is Wait.ROOM
                    break
                self._queue.popleft()
        except LogError as error:
            self._failed(error)
        if self._is_waiting_for_room:
            self._needs_room(self._room_again)
        elif self._is_waiting:
            self._needs_round()


def one_round() -> Operation:
    """Only wait: journal additions must be durable before the next batch."""
    yield Wait.ROUND
