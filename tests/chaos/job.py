"""What one client process is told to do, and how it knows that it is time to stop."""

import json
import signal
import threading
import time
from dataclasses import asdict, dataclass

TOPIC = "chaos"
GROUP = "chaos-readers"
TRANSACTIONS = "chaos-transactions"
"""The topic of those who write in transactions, and how their transactional ids begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One client: what it is, whom it talks to, and where it writes its history."""

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
        """Return what another process was told."""
        return cls(**json.loads(text))


class Stop:
    """Set by SIGTERM: what is under way is finished, nothing new begun."""

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
