"""The bytes that all connections together have received and not yet answered, and their limit.

Over the limit those wait who hold much of it. Small requests still pass, or a few who fill the
memory and then say nothing more could shut everybody out. And among those in the middle of a
request one at a time goes on, because only whole requests can be answered and free what they hold:
so a request may be larger than what is left. The limit is passed by at most that one, and by
one read for each connection.
"""

from typing import Protocol

RESUMED_BYTES = 256 << 10
"""What a reader that is let on may take before it is looked at again: one read."""


FREE_BYTES = 64 << 10
"""Who holds no more than this is never kept waiting."""


class Reader(Protocol):
    """A connection that can be kept waiting."""

    @property
    def held_bytes(self) -> int:
        """What it has received and was not answered."""
        ...

    @property
    def is_within_frame(self) -> bool:
        """Whether it has received a part of a request."""
        ...

    def resume(self) -> None:
        """Learn that it may be read from again; it asks `admits` anew."""
        ...


class Budget:
    """Counts the bytes in flight. Those kept waiting go on in the order in which they came."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._waiting: dict[Reader, None] = {}
        self._turn: Reader | None = None

    @property
    def is_over(self) -> bool:
        """Whether more is held than should be: then read little at a time."""
        return self.held_bytes > self.bytes_max

    @property
    def is_calm(self) -> bool:
        """Whether nobody waits or need wait: then there is nothing to ask it."""
        return self.held_bytes <= self.bytes_max and not self._waiting and self._turn is None

    @property
    def waiting(self) -> int:
        """How many are kept waiting."""
        return len(self._waiting)

    def take(self, count: int) -> None:
        """Count bytes that were received."""
        self.held_bytes += count

    def give(self, count: int) -> None:
        """Count bytes that were answered, and let others on for them."""
        self.held_bytes -= count
        if self._waiting:
            self.wake()

    def admits(self, reader: Reader) -> bool:
        """Return whether a reader may go on; else it is told by `resume` when to ask again."""
        if self.held_bytes <= self.bytes_max or reader.held_bytes <= FREE_BYTES:
            self._waiting.pop(reader, None)
            if self._turn is reader:
                self._turn = None
                self.wake()
            return True
        if reader.is_within_frame and self._turn in (None, reader):
            self._turn = reader
            return True
        self._waiting[reader] = None
        if self._turn is reader:
            self._turn = None
            self.wake()
        return False

    def forget(self, reader: Reader) -> None:
        """Learn that a reader is gone."""
        self._waiting.pop(reader, None)
        if self._turn is reader:
            self._turn = None
        if self._waiting:
            self.wake()

    def wake(self) -> None:
        """Let on as many as there is room for; also called now and then, lest anyone be forgotten.

        One who is let on may have nothing to send, and then frees nothing for the next.
        """
        room = self.bytes_max - self.held_bytes
        while self._waiting and room >= 0:
            self._resume(next(iter(self._waiting)))
            room -= RESUMED_BYTES
        if self._waiting and room < 0 and self._turn is None:
            within = next((one for one in self._waiting if one.is_within_frame), None)
            if within is not None:
                self._turn = within
                self._resume(within)

    def _resume(self, reader: Reader) -> None:
        del self._waiting[reader]
        reader.resume()
