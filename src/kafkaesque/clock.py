"""Time, injected: production reads the machine's clocks, the simulator its own."""

import time
from collections.abc import Callable
from typing import Protocol

from kafkaesque.ages import Ages


class Clock(Protocol):
    """A wall clock, and a clock that never jumps."""

    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since 1970; for timestamps and retention only."""
        ...

    def monotonic_ms(self) -> int:
        """Return a clock that never goes back; for all timeouts and leases."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return the machine's monotonic clock in milliseconds."""
        return time.monotonic_ns() // 1_000_000


def clock_ages(clock: Clock) -> Callable[[], Ages]:
    """Return a function that reads ages from a clock that is always trusted."""
    return lambda: Ages(now_ms=clock.now_ms())
