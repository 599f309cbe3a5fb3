"""The server's counters: plain integers, incremented on each occurrence and read by /metrics.

`metrics.py` names them.
"""

from bisect import bisect_left
from collections import Counter
from enum import StrEnum

TIME_BOUNDS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Upper bounds of the request time buckets; one more holds longer times."""


class Kind(StrEnum):
    """The protocol of a connection."""

    NEW = "new"
    KAFKA = "kafka"
    TEXT = "text"
    HTTP = "http"
    LINK = "link"


class Refusal(StrEnum):
    """Why the broker closed a connection."""

    CONNECTIONS = "connections"
    CONNECTIONS_PER_ADDRESS = "connections_per_address"
    RATE = "rate"
    RATE_PER_ADDRESS = "rate_per_address"
    PROTOCOL = "protocol"
    FIRST_BYTE_TIME = "first_byte_time"
    CATCHING_UP = "catching_up"
    REQUEST_TIME = "request_time"
    IDLE = "idle"
    REQUEST = "request"
    FAILURE = "failure"
    CONTROLLER_LOST = "controller_lost"


class ApiCounter:
    """The requests of one API."""

    __slots__ = ("buckets", "errors", "requests", "seconds")

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(TIME_BOUNDS_S) + 1)


class Counters:
    """All counters of one broker's server."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self.sent_bytes = 0
        self.apis: dict[int, ApiCounter] = {}
        self.accepted: Counter[Kind] = Counter()
        self.open: Counter[Kind] = Counter()
        self.refused: Counter[Refusal] = Counter()

    def answered(self, key: int, seconds: float, count: int = 1) -> None:
        """Count requests that took this long each."""
        counter = self.apis.get(key) or self.api(key)
        counter.requests += count
        counter.seconds += seconds * count
        counter.buckets[bisect_left(TIME_BOUNDS_S, seconds)] += count

    def api(self, key: int) -> ApiCounter:
        """Return the counter of an API that is served."""
        found = self.apis.get(key)
        if found is None:
            found = self.apis[key] = ApiCounter()
        return found
