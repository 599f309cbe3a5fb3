"""The answers to one request that went to many workers, and whether they are enough."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafkaesque.errors import InvalidPattern, RequestFailed

WORKERS_MAX = 1_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered(Generic[T]):
    """The answers; `value` is what the user's function made of them."""

    value: T
    answers: Mapping[str, bytes | None]
    failed: Mapping[str, RequestFailed]
    missing: frozenset[str]
    """Expected workers without an answer, because of the deadline or because there was enough."""

    @property
    def is_whole(self) -> bool:
        """Whether every worker answered without an error."""
        return not self.missing and not self.failed


class Gather:
    """The answers to one request: done when all workers have answered, or `enough` have.

    After an error its worker is no longer awaited, but it does not count towards `enough`.
    Duplicate answers and those of unexpected workers are dropped.
    """

    def __init__(self, workers: Collection[str], enough: int | None = None) -> None:
        if not 0 < len(workers) <= WORKERS_MAX or len(set(workers)) != len(workers):
            raise InvalidPattern(f"expected 1 to {WORKERS_MAX} workers with different names")
        if enough is not None and not 0 < enough <= len(workers):
            raise InvalidPattern(f"enough must be 1 to {len(workers)}, not {enough}")
        self._workers = tuple(workers)
        self._enough = len(self._workers) if enough is None else enough
        self.answers: dict[str, bytes | None] = {}
        self.failed: dict[str, RequestFailed] = {}

    @property
    def missing(self) -> frozenset[str]:
        """Workers that have not answered."""
        return frozenset(self._workers) - self.answers.keys() - self.failed.keys()

    @property
    def is_done(self) -> bool:
        """Whether more answers would change nothing."""
        return len(self.answers) >= self._enough or not self.missing

    def take(self, worker: str, answer: bytes | RequestFailed | None) -> bool:
        """Add one answer; False if it is dropped."""
        if self.is_done or worker not in self.missing:
            return False
        if isinstance(answer, RequestFailed):
            self.failed[worker] = answer
        else:
            self.answers[worker] = answer
        return True
