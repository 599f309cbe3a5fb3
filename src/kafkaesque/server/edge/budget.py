"""A limit on the bytes that all connections have received and not yet answered.

Over the limit the connections that hold much must wait. Small requests still pass; otherwise a few
clients could fill the memory, fall silent, and lock out everyone. Among the connections within a
request one at a time continues, because only complete requests can be answered and free their
bytes: so a request may be larger than the remaining room. The limit is exceeded by at most that one
request, and by one read per connection.
"""

from typing import Protocol

RESUMED_BYTES = 256 << 10
"""What a resumed reader may take before the next check: one read."""


FREE_BYTES = 64 << 10
"""A reader that holds no more than this never waits."""


class Reader(Protocol):
    """A connection whose reads can be paused."""

    @property
    def held_bytes(self) -> int:
        """Bytes received and not yet answered."""
        ...

    @property
    def is_within_frame(self) -> bool:
        """Whether it has received part of a request."""
        ...

    def resume(self) -> None:
        """Resume reading; it calls `admits` again."""
        ...


class Budget:
    """Counts the bytes in flight. Paused readers resume in the order of arrival."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._waiting: dict[Reader, None] = {}
        self._turn: Reader | None = None

    @property
    def is_over(self) -> bool:
        """Whether the limit is exceeded: then read little at a time."""
        return self.held_bytes > self.bytes_max

    @property
    def is_calm(self) -> bool:
        """Whether no reader waits or must: then `admits` need not be called."""
        return self.held_bytes <= self.bytes_max and not self._waiting and self._turn is None

    @property
    def waiting(self) -> int:
        """The number of paused readers."""
        return len(self._waiting)

    def take(self, count: int) -> None:
        """Count received bytes."""
        self.held_bytes += count

    def give(self, count: int) -> None:
        """Release answered bytes, and resume readers."""
        self.held_bytes -= count
        if self._waiting:
            self.wake()

    def admits(self, reader: Reader) -> bool:
        """Return whether a reader may continue; if not, `resume` is called later."""
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
        """Forget a closed reader."""
        self._waiting.pop(reader, None)
        if self._turn is reader:
            self._turn = None
        if self._waiting:
            self.wake()

    def wake(self) -> None:
        """Resume as many readers as there is room for; also called periodically to miss none.

        A resumed reader may have nothing to send, and then frees nothing for the next.
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
