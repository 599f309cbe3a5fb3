"""Waits until an index is committed, or until its outcome cannot be known any more.

A leader that loses its term cannot know whether the next one will commit what it appended. Waiting
callers then get *unknown*: never that it failed, never that it worked.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from kafkaesque.types import Index


class Outcome(Enum):
    """The outcome of an append, as far as this replica can tell."""

    COMMITTED = auto()
    UNKNOWN = auto()
    DELETED = auto()
    """The topic was deleted: its records will never be read."""
    TOO_FEW = auto()
    """Fewer replicas are in sync than its topic requires. It may still be committed."""


Done = Callable[[Outcome], None]


class Watermark:
    """Callbacks that wait for one replica's commit index, ordered by index."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Index, Done]] = deque()

    def wait(self, end: Index, done: Done) -> None:
        """Call `done` once everything before `end` is committed, or its fate is unknown."""
        assert not self._waiting or end >= self._waiting[-1][0], "appends are made in order"
        self._waiting.append((end, done))

    def reached(self, commit: Index) -> None:
        """Notify the callbacks whose entries are committed now."""
        while self._waiting and self._waiting[0][0] <= commit:
            self._waiting.popleft()[1](Outcome.COMMITTED)

    def lost(self, outcome: Outcome = Outcome.UNKNOWN) -> None:
        """Give `outcome` to all others: it can no longer be known here, or no longer matters."""
        waiting, self._waiting = self._waiting, deque()
        for _, done in waiting:
            done(outcome)


class Copies:
    """Callbacks that wait for more than one copy: for the commit, and for enough replicas.

    A majority commits, and consumers see what is committed. A caller that wants more copies is
    answered later, in order, or learns that too few replicas are in sync.
    """

    def __init__(self) -> None:
        self.waiting: deque[tuple[Index, int, Done]] = deque()
        """The index to reach, the number of copies, and the callback."""

    def wait(self, end: Index, count: int, done: Done) -> None:
        """Call `done` once everything before `end` is committed and held by `count` replicas."""
        self.waiting.append((end, count, done))

    def reached(self, commit: Index, held_by: Callable[[int], Index]) -> None:
        """Notify satisfied callbacks; `held_by` returns how far that many replicas hold the log."""
        while self.waiting:
            end, count, done = self.waiting[0]
            if min(commit, held_by(count)) < end:
                return
            self.waiting.popleft()
            done(Outcome.COMMITTED)

    def too_few(self, in_sync: int) -> None:
        """Notify callbacks that wait for more copies than there are in-sync replicas."""
        waiting, self.waiting = self.waiting, deque()
        self.waiting.extend(one for one in waiting if one[1] <= in_sync)
        for _, count, done in waiting:
            if count > in_sync:
                done(Outcome.TOO_FEW)

    def lost(self, outcome: Outcome = Outcome.UNKNOWN) -> None:
        """Give `outcome` to all: it can no longer be known here, or no longer matters."""
        waiting, self.waiting = self.waiting, deque()
        for _, _, done in waiting:
            done(outcome)
