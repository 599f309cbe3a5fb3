"""Which dead letters were already sent back: ranges of offsets, kept in their own topic."""

import re
from bisect import bisect_right
from collections.abc import Iterable

from kafkaesque.types import Offset

REDRIVEN_SUFFIX = ".redriven"
RANGES_PER_MARK_MAX = 1_000

_FORM = re.compile(r"\d{1,18}-\d{1,18}(,\d{1,18}-\d{1,18}){0,999}")


class Marks:
    """A set of offsets of one partition, as disjoint half-open ranges."""

    def __init__(self) -> None:
        self._starts: list[Offset] = []
        self._ends: list[Offset] = []

    def __contains__(self, offset: Offset) -> bool:
        at = bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]

    def add(self, start: Offset, end: Offset) -> None:
        """Add the offsets from start up to, not including, end."""
        if start >= end:
            return
        if self._ends and self._ends[-1] == start:  # the common case: added in order
            self._ends[-1] = end
            return
        first = bisect_right(self._ends, start - 1)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def ranges(self) -> list[tuple[Offset, Offset]]:
        """Return the ranges in order."""
        return list(zip(self._starts, self._ends, strict=True))

    def __len__(self) -> int:
        return len(self._starts)


def encode(ranges: Iterable[tuple[Offset, Offset]]) -> bytes:
    """Return ranges as the value of a mark."""
    return ",".join(f"{start}-{end}" for start, end in ranges).encode()


def decode(value: bytes | None) -> list[tuple[Offset, Offset]]:
    """Read the value of a mark; any other value holds no ranges."""
    text = (value or b"").decode(errors="replace")
    if not text.isascii() or not _FORM.fullmatch(text):
        return []
    pairs = (part.split("-") for part in text.split(","))
    return [(int(start), int(end)) for start, end in pairs]
