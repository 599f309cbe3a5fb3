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
