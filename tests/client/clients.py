"""Clients whose clock moves only while they sleep, so that no test waits."""

import random
from dataclasses import dataclass, field

from kafkaesque.client.admin import Admin
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.router import Surroundings

START_MS = 1_700_000_000_000


@dataclass(slots=True, kw_only=True)
class SleepyClock:
    """A clock that advances only by sleeping: deadlines do not pass because the machine is slow."""

    slept: list[float] = field(default_factory=list)

    def now_ms(self) -> int:
        """Return the wall clock."""
        return START_MS + self._slept_ms

    def monotonic_ms(self) -> int:
        """Return the clock that never goes back."""
        return self._slept_ms

    def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.slept.append(seconds)

    @property
    def _slept_ms(self) -> int:
        return int(sum(self.slept) * 1000)


def an_admin(bootstrap: str, clock: SleepyClock | None = None, **settings: int) -> Admin:
    """Return an Admin whose sleeps take no time; settings are those of ClientConfig."""
    clock = clock or SleepyClock()
    around = Surroundings(clock=clock, chance=random.Random(7), sleep=clock.sleep)
    return Admin(bootstrap, ClientConfig(**settings), around)  # type: ignore[arg-type]
