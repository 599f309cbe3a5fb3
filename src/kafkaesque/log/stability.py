"""How far a log counts as written; only the topic's flush policy decides this.

| policy | a batch is stable | a power loss may take |
| --- | --- | --- |
| always | when it is synced | nothing that was stable |
| interval | when the system has it; a sync follows within `flush_ms` and a tick | what is younger |
| os | when the system has it; a sync follows when its segment is closed | up to a segment |

A sync also follows after `flush_records` records.

Under every policy, the end of the process takes nothing. Marks, cuts, trims and hard state always
wait for the disk: while such an operation is under way, nothing counts unsynced.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kafkaesque.log.flusher import Flushed, Flusher
from kafkaesque.topic_settings import FlushPolicy
from kafkaesque.types import Index

FLUSH_RECORDS_MAX = (1 << 63) - 1
"""Too large to ever trigger a sync."""


class Reported(Flushed, Protocol):
    """A log whose owner is notified of what is stable."""

    on_stable: Callable[[Index], None]


class Stability:
    """Tracks what is stable and what is durable in one log; `countable` bounds unsynced entries."""

    def __init__(
        self, log: Reported, flusher: Flusher, end: Index, countable: Callable[[], Index]
    ) -> None:
        self.stable = end
        self.durable = end
        self.policy = FlushPolicy.ALWAYS
        self.flush_ms = 0
        self.flush_records = FLUSH_RECORDS_MAX
        self.clamps: deque[Index] = deque()
        """Cuts under way: nothing at or after them is reported."""
        self._log = log
        self._flusher = flusher
        self._countable = countable
        self._is_report_due = False

    def want(self, *, has_rolled: bool) -> None:
        """Arrange for written entries to become stable; closed segments are always synced.

        So recovery need read only the last one.
        """
        if self.policy is FlushPolicy.ALWAYS:
            self._flusher.request(self._log)
            return
        if not self._is_report_due:
            self._is_report_due = True
            self._flusher.before_next_round(self._report_written)
        if self.policy is FlushPolicy.INTERVAL:
            self._flusher.request_within(self._log, self.flush_ms)
        if has_rolled or self._countable() - self.durable >= self.flush_records:
            self._flusher.request(self._log)

    def synced(self, captured: Index) -> None:
        """Handle a round that made everything before `captured` durable."""
        # A cut made since the round started is still clamped: it waits for a later round.
        durable = min(captured, *self.clamps) if self.clamps else captured
        self.durable = max(self.durable, durable)
        self._report(self.durable)
        if self.policy is not FlushPolicy.ALWAYS:
            self._report(self._countable())

    def lower(self, index: Index) -> None:
        """Count nothing from `index` onwards."""
        self.stable = min(self.stable, index)
        self.durable = min(self.durable, index)

    def _report_written(self) -> None:
        self._is_report_due = False
        if self.policy is not FlushPolicy.ALWAYS:
            self._report(self._countable())

    def _report(self, stable: Index) -> None:
        if stable > self.stable:
            self.stable = stable
            self._log.on_stable(stable)
