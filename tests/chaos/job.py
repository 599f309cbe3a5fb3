"""The job of one client process, and how it learns that it has to stop."""

import json
import signal
import threading
import time
from dataclasses import asdict, dataclass

TOPIC = "chaos"
GROUP = "chaos-readers"
TRANSACTIONS = "chaos-transactions"
"""The topic of transactional producers, and the prefix of their transactional ids."""
QUEUE = "chaos-queue"
SHARERS = "chaos-sharers"
DELIVERIES_MAX = 100
"""After so many deliveries a record of the queue is given up: too many to happen by chance."""
LOCK_MS = 5_000
"""How long a member of the share group may hold a record; short, so that runs end soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One client: its role, its brokers, and the file of its history."""

    role: str
    name: str
    bootstrap: str
    history: str
    partitions: int
    pause_ms: int = 2
    """How long a producer waits between two records, and a slow consumer between two polls."""

    def to_json(self) -> str:
        """Return it as an argument for the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Return the job from another process's argument."""
        return cls(**json.loads(text))


class Stop:
    """Set by SIGTERM: the current operation is finished, and no new one is started."""

    def __init__(self) -> None:
        self._event = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self._event.set())

    @property
    def is_asked(self) -> bool:
        """Whether it is time to stop."""
        return self._event.is_set()

    def pause(self, ms: int) -> None:
        """Wait a little, or until it is time to stop."""
        self._event.wait(ms / 1000)


def now() -> int:
    """Return the time of histories."""
    return time.monotonic_ns()
