"""A histogram of latencies that keeps every value to within 3 %, however long it grows.

The buckets are those of HdrHistogram: exact below 64 ns, then 32 for each power of two. Two
histograms can therefore be added without loss.
"""

from collections import Counter
from collections.abc import Iterable

_SUB_BITS = 5
_SUB = 1 << _SUB_BITS


def bucket_top(value_ns: int) -> int:
    """Return the largest value in the same bucket."""
    assert value_ns >= 0, "nothing arrives before it was due"
    if value_ns < 2 * _SUB:
        return value_ns
    shift = value_ns.bit_length() - 1 - _SUB_BITS
    return (((value_ns >> shift) + 1) << shift) - 1


class Histogram:
    """Counts of latencies in nanoseconds."""

    def __init__(self, counts: Iterable[tuple[int, int]] = ()) -> None:
        self._counts: Counter[int] = Counter()
        for value_ns, count in counts:
            self._counts[bucket_top(value_ns)] += count

    def add(self, value_ns: int) -> None:
        """Count one latency."""
        self._counts[bucket_top(value_ns)] += 1

    def merge(self, other: "Histogram") -> None:
        """Add all counts of another histogram."""
        self._counts.update(other._counts)

    @property
    def count(self) -> int:
        """The number of latencies."""
        return self._counts.total()

    def pairs(self) -> list[tuple[int, int]]:
        """Return (upper end of a bucket, count), smallest first."""
        return sorted(self._counts.items())

    def percentile(self, percent: float) -> int:
        """Return the latency that this percentage did not exceed; raises ValueError if empty.

        100 is the maximum. It is the nearest rank, never a value between two recorded ones.
        """
        if not self._counts:
            raise ValueError("no latencies were counted")
        assert 0 <= percent <= 100, "a percentage"
        # Rounded up by integers: 99.9 as a float is a little more than 99.9.
        rank = max(1, -(-round(percent * 1000) * self.count // 100_000))
        for value_ns, count in self.pairs():
            rank -= count
            if rank <= 0:
                return value_ns
        raise AssertionError("the ranks are those of what was counted")
