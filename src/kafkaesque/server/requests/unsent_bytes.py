"""Responses that clients do not read: a limit on all bytes that wait in memory.

A client that does not read costs the memory of one response, and a Fetch response can be large. A
few such clients are tolerated. When all of them together hold more than the limit, Fetch responses
shrink, down to one batch: every client makes progress, and none can fill the memory by not reading.
"""

LITTLE_BYTES = 64 << 10
"""A Fetch response above the limit; a larger batch comes alone, or it would never come."""


class Untaken:
    """One broker's responses that wait for clients to read."""

    __slots__ = ("bytes_max", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0

    def fitting(self, bytes_wanted: int) -> int:
        """Return how much of the requested bytes a response may carry now."""
        is_over = self.held_bytes > self.bytes_max
        return min(bytes_wanted, LITTLE_BYTES) if is_over else bytes_wanted
