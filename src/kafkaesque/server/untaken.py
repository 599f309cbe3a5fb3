"""What clients asked for and do not take: the bytes of all answers that wait in memory.

Who asks and does not read costs the memory of one answer, and one to Fetch can be large. A few
such clients are borne. When all of them together hold more than the limit, a Fetch is answered with
little, down to one batch: everybody goes on, and nobody can fill the memory by not reading.
"""

LITTLE_BYTES = 64 << 10
"""What a Fetch may bring over the limit; a larger batch comes alone, or it would never come."""


class Untaken:
    """The answers of one broker that wait for their clients to read."""

    __slots__ = ("bytes_max", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0

    def fitting(self, bytes_wanted: int) -> int:
        """Return how much of what is asked for an answer may bring now."""
        is_over = self.held_bytes > self.bytes_max
        return min(bytes_wanted, LITTLE_BYTES) if is_over else bytes_wanted
