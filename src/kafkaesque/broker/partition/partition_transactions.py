"""The open transactions of one partition, and which of its records were aborted.

All of it follows from the log: a transaction is open from its first batch to its marker. Up to the
*last stable offset* every transaction is decided, and its marker committed; read-committed
consumers get nothing beyond it. Aborted records stay in the log. Consumers must know which they
are, so every abort is remembered while the log reaches back to it.
"""

from array import array
from bisect import bisect_left
from collections import deque
from struct import Struct
from typing import NamedTuple

from kafkaesque.types import Offset

_COUNT = Struct(">I")
_ABORTED = Struct(">qqqq")


class Aborted(NamedTuple):
    """A producer's records from this offset to its next marker do not count."""

    producer_id: int
    first_offset: Offset


class PartitionTransactions:
    """The transactions of one partition. Pure; markers are passed in log order."""

    def __init__(self) -> None:
        self._open: dict[int, Offset] = {}
        """Each producer's transaction start; ordered by start."""
        self._ended: deque[tuple[Offset, Offset]] = deque()
        """Markers that may be uncommitted, each with the start of its transaction."""
        self._producers = array("q")
        self._firsts = array("q")
        self._markers = array("q")
        """Ascending, as in the log."""
        self._stables = array("q")
        """At each abort, the start of the next open transaction: later ones start behind it."""

    @property
    def aborted_count(self) -> int:
        """How many aborted transactions are remembered."""
        return len(self._markers)

    @property
    def open_count(self) -> int:
        """How many transactions are open."""
        return len(self._open)

    def first_offset(self, producer_id: int) -> Offset | None:
        """Return where the producer's open transaction starts; None if it has none."""
        return self._open.get(producer_id)

    def wrote(self, producer_id: int, offset: Offset) -> None:
        """Note a batch of a transaction."""
        self._open.setdefault(producer_id, offset)

    def ended(self, producer_id: int, marker: Offset, *, is_commit: bool) -> None:
        """Note a marker; it has no effect for a producer without an open transaction."""
        first = self._open.pop(producer_id, None)
        if first is None:
            return
        self._ended.append((marker, first))
        if not is_commit:
            self._producers.append(producer_id)
            self._firsts.append(first)
            self._markers.append(marker)
            self._stables.append(next(iter(self._open.values()), marker + 1))

    def stable_offset(self, high_watermark: Offset) -> Offset:
        """Return the last stable offset: before it every transaction is decided for good."""
        self._forget_committed(high_watermark)
        stable = min((first for _, first in self._ended), default=high_watermark)
        first_open = next(iter(self._open.values()), high_watermark)
        return min(stable, first_open, high_watermark)

    def aborted(self, first: Offset, end: Offset) -> list[Aborted]:
        """Return the aborted transactions that have records in [first, end)."""
        found = []
        for place in range(bisect_left(self._markers, first), len(self._markers)):
            if self._firsts[place] < end:
                found.append(Aborted(self._producers[place], self._firsts[place]))
            if self._stables[place] >= end:
                break
        return found

    def trim(self, start: Offset, high_watermark: Offset) -> None:
        """Forget aborts that the log no longer covers, and committed ends."""
        self._forget_committed(high_watermark)
        gone = bisect_left(self._markers, start)
        if gone:
            for column in (self._producers, self._firsts, self._markers, self._stables):
                del column[:gone]

    def _forget_committed(self, high_watermark: Offset) -> None:
        ended = self._ended
        while ended and ended[0][0] < high_watermark:
            ended.popleft()

    # ── on disk ──────────────────────────────────────────────────────────────────────────────

    def state(self) -> bytes:
        """Serialize the aborts as described in `docs/reference/format-snapshot.md`."""
        out = bytearray(_COUNT.pack(len(self._markers)))
        columns = (self._producers, self._firsts, self._markers, self._stables)
        for row in zip(*columns, strict=True):
            out += _ABORTED.pack(*row)
        return bytes(out)

    def load(self, state: bytes | bytearray, position: int) -> None:
        """Load the aborts stored in `state` at `position`."""
        (count,) = _COUNT.unpack_from(state, position)
        position += _COUNT.size
        for _ in range(count):
            producer, first, marker, stable = _ABORTED.unpack_from(state, position)
            self._producers.append(producer)
            self._firsts.append(first)
            self._markers.append(marker)
            self._stables.append(stable)
            position += _ABORTED.size
