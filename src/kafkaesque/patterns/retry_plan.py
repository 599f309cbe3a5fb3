"""How often a message is tried, how long it waits between attempts, and in which topic."""

import re
from dataclasses import dataclass

from kafkaesque.errors import InvalidPattern
from kafkaesque.patterns.message import Headers, int_header

ATTEMPT = "kafkaesque-attempt"
DUE = "kafkaesque-due"

TIERS_MAX = 16
TOPIC_CHARS_MAX = 249
DEAD_LETTER_SUFFIX = ".dlq"
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPlan:
    """One retry after each delay; without delays the first failure is final."""

    delays_ms: tuple[int, ...] = (1_000, 10_000, 60_000)

    def __post_init__(self) -> None:
        if len(self.delays_ms) > TIERS_MAX:
            raise InvalidPattern(f"there are {len(self.delays_ms)} delays, more than {TIERS_MAX}")
        if any(delay < 0 for delay in self.delays_ms):
            raise InvalidPattern("a delay is negative")

    @property
    def attempts_max(self) -> int:
        """How often a message is tried in total."""
        return len(self.delays_ms) + 1

    def attempt_of(self, headers: Headers) -> int:
        """Return a message's attempt, from 1; foreign headers make it 1.

        A number beyond the plan, from a worker with more delays, counts as the last attempt.
        """
        found = int_header(headers, ATTEMPT)
        return 1 if not found else min(found, self.attempts_max)

    def next_tier(self, attempt: int) -> int | None:
        """Return the retry topic, from 1, after this attempt failed; None means dead letter."""
        return attempt if attempt < self.attempts_max else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The topics of a group of workers beside the one that it works on."""

    topic: str
    group: str
    tiers: int

    def __post_init__(self) -> None:
        for name in (self.topic, self.dead_letter, *self.retries):
            if not name or len(name) > TOPIC_CHARS_MAX or _FORBIDDEN.search(name):
                raise InvalidPattern(f"{name!r} is not a valid topic name")

    @property
    def _base(self) -> str:
        return f"{self.topic}.{_FORBIDDEN.sub('-', self.group)}"

    @property
    def retries(self) -> tuple[str, ...]:
        """The retry topics; the first is for messages that failed once."""
        return tuple(f"{self._base}.retry-{tier}" for tier in range(1, self.tiers + 1))

    @property
    def dead_letter(self) -> str:
        """The topic for messages that failed for good."""
        return f"{self._base}{DEAD_LETTER_SUFFIX}"


def due_ms(headers: Headers) -> int:
    """Return when a message of a retry topic is due, on the wall clock; 0 without a header."""
    return int_header(headers, DUE) or 0
