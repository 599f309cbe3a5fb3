"""Who has answered one request that went to many, and whether that is enough."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafkaesque.errors import InvalidPattern, RequestFailed

WORKERS_MAX = 1_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered(Generic[T]):
    """What came back; `value` is what the user's function made of the answers."""

    value: T
    answers: Mapping[str, bytes | None]
    failed: Mapping[str, RequestFailed]
    missing: frozenset[str]
    """Those who were expected and said nothing in time, or not before there was enough."""

    @property
    def is_whole(self) -> bool:
        """Whether everyone answered, and none with an error."""
        return not self.missing and not self.failed


class Gather:
    """The answers to one request: done when all have spoken, or enough have answered.

    An error is an answer in so far as one no longer waits for its worker, but it does not count as
    enough. Second answers and those of strangers are dropped.
    """

    def __init__(self, workers: Collection[str], enough: int | None = None) -> None:
        if not 0 < len(workers) <= WORKERS_MAX or len(set(workers)) != len(workers):
            raise InvalidPattern(f"1 to {WORKERS_MAX} workers of different names are expected")
        if enough is not None and not 0 < enough <= len(workers):
            raise InvalidPattern(f"enough is 1 to {len(workers)}, not {enough}")
        self._workers = tuple(workers)
        self._enough = len(self._workers) if enough is None else enough
        self.answers: dict[str, bytes | None] = {}
        self.failed: dict[str, RequestFailed] = {}

    @property
    def missing(self) -> frozenset[str]:
        """Those who have not spoken."""
        return frozenset(self._workers) - self.answers.keys() - self.failed.keys()

    @property
    def is_done(self) -> bool:
        """Whether waiting for more is of no use."""
        return len(self.answers) >= self._enough or not self.missing

    def take(self, worker: str, answer: bytes | RequestFailed | None) -> bool:
        """Take one answer; False if it is dropped."""
        if self.is_done or worker not in self.missing:
            return False
        if isinstance(answer, RequestFailed):
            self.failed[worker] = answer
        else:
            self.answers[worker] = answer
        return True
