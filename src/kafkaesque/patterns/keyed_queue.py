"""Messages in wait: any may run beside any other, except that one key's run one after another."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class KeyedQueue(Generic[T]):
    """A queue that gives out the oldest message whose key is not at work.

    Messages without a key have no order among themselves. Its user bounds how many it holds.
    """

    def __init__(self) -> None:
        self.ready: deque[tuple[bytes | None, T]] = deque()
        """Those that may be taken; for reading only."""
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
            self._behind[key] = None  # most keys have one message under way: no queue for them
        self.ready.append((key, item))

    def take(self) -> tuple[bytes | None, T]:
        """Take the oldest one that may run; its key must be given back with `done`."""
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
