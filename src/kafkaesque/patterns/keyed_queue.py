"""Waiting messages: those of one key run one after another, all others concurrently."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class KeyedQueue(Generic[T]):
    """A queue that returns the oldest message whose key is not being handled.

    Messages without a key have no order among themselves. The caller bounds its size.
    """

    def __init__(self) -> None:
        self.ready: deque[tuple[bytes | None, T]] = deque()
        """Messages that may be taken; read-only for callers."""
        self._behind: dict[bytes, deque[T] | None] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return len(self.ready) + self._waiting

    def put(self, key: bytes | None, item: T) -> None:
        """Add one at the end."""
        if key is not None:
            if key in self._behind:
                behind = self._behind[key]
                if behind is None:
                    behind = self._behind[key] = deque()
                behind.append(item)
                self._waiting += 1
                return
            self._behind[key] = None  # most keys have one message under way and need no queue
        self.ready.append((key, item))

    def take(self) -> tuple[bytes | None, T]:
        """Take the oldest message that may run; call `done` with its key afterwards."""
        return self.ready.popleft()

    def done(self, key: bytes | None) -> None:
        """Let the next message of the key run."""
        if key is None:
            return
        behind = self._behind[key]
        if behind:
            self.ready.append((key, behind.popleft()))
            self._waiting -= 1
        else:
            del self._behind[key]
