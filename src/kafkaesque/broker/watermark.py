"""The one way to wait: until an index is committed, or until nobody can say any more.

A leader that loses its term cannot know whether what it appended will be committed by the next one.
Those who wait are then told *unknown*: never that it failed, never that it worked.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from kafkaesque.types import Index


class Outcome(Enum):
    """How an append ended, as far as this replica can tell."""

    COMMITTED = auto()
    UNKNOWN = auto()
    DELETED = auto()
    """The topic was deleted: nobody will ever ask for it."""
    TOO_FEW = auto()
    """Fewer replicas are in sync than its topic wants copies. It may yet be committed."""


Done = Callable[[Outcome], None]


class Watermark:
    """Those who wait for the commit index of one replica, in the order of what they wait for."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Index, Done]] = deque()

    def wait(self, end: Index, done: Done) -> None:
        """Call `done` once everything before `end` is committed, or its fate is unknown."""
        assert not self._waiting or end >= self._waiting[-1][0], "appends are made in order"
        self._waiting.append((end, done))

    def reached(self, commit: Index) -> None:
        """Tell those whose entries are committed now."""
        while self._waiting and self._waiting[0][0] <= commit:
            self._waiting.popleft()[1](Outcome.COMMITTED)

    def lost(self, outcome: Outcome = Outcome.UNKNOWN) -> None:
        """Tell everyone else that this replica will never know, or why nobody needs to."""
        waiting, self._waiting = self._waiting, deque()
        for _, done in waiting:
            done(outcome)


class Copies:
    """Those who wait for more copies than one: for the commit, and for so many replicas to hold it.

    A majority commits, and consumers see what is committed. Whoever asked for more copies than
    that is answered later, in order, or is told that there are too few replicas for it now.
    """

    def __init__(self) -> None:
        self.waiting: deque[tuple[Index, int, Done]] = deque()
        """Up to where, how many copies, and who is to be told."""

    def wait(self, end: Index, count: int, done: Done) -> None:
        """Call `done` once everything before `end` is committed and held by `count` replicas."""
        self.waiting.append((end, count, done))

    def reached(self, commit: Index, held_by: Callable[[int], Index]) -> None:
        """Tell those who have what they asked for; `held_by` says how far so many hold the log."""
        while self.waiting:
            end, count, done = self.waiting[0]
            if min(commit, held_by(count)) < end:
                return
            self.waiting.popleft()
            done(Outcome.COMMITTED)

    def too_few(self, in_sync: int) -> None:
        """Tell those who wait for more copies than there are replicas in sync."""
        waiting, self.waiting = self.waiting, deque()
        self.waiting.extend(one for one in waiting if one[1] <= in_sync)
        for _, count, done in waiting:
            if count > in_sync:
                done(Outcome.TOO_FEW)

    def lost(self, outcome: Outcome = Outcome.UNKNOWN) -> None:
        """Tell everyone that this replica will never know, or why nobody needs to."""
        waiting, self.waiting = self.waiting, deque()
        for _, _, done in waiting:
            done(outcome)
