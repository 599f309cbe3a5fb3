"""A leader's view of one follower, and how fast it may send.

    PROBE      one append at a time, until the place where both logs agree is found
    REPLICATE  appends are sent ahead of their answers, up to a window

An accepted append moves it from PROBE to REPLICATE, a rejected one back.
"""

from collections import deque
from enum import Enum, auto

from kafkaesque.types import Index, Offset


class Pace(Enum):
    """How the leader sends to a follower."""

    PROBE = auto()
    REPLICATE = auto()


class Progress:
    """One follower, as its leader sees it."""

    def __init__(self, next_index: Index) -> None:
        self.match: Index = 0
        self.next: Index = next_index
        self.commit: Index = 0
        self.announced: Index = 0
        """The newest commit announced to it outside of a heartbeat."""
        self.low: Offset = 0
        """Up to here it has forgotten deleted records."""
        self.pace = Pace.PROBE
        self.is_probe_sent = False
        self.probed_at: Index = next_index
        """The `prev_end` of the newest append: an older rejection is stale."""
        self.rejected_at: Index | None = None
        """Where the follower's log was found to differ; only then may an append cross a hole."""
        self.is_active = True
        """Whether it answered since the last quorum check."""
        self.allowance: int | None = None
        """How many more bytes it may be sent; None for no limit. One append may take it below
        zero."""
        self.answered_at = 0
        """The leader's tick at which it last answered, or at which a rest ended."""
        self.heard_at = -1
        """The leader's tick at which it last actually answered."""
        self._inflight: deque[Index] = deque()

    @property
    def is_held_back(self) -> bool:
        """Whether its allowance is used up."""
        return self.allowance is not None and self.allowance <= 0

    def may_send(self, inflight_max: int) -> bool:
        """Return whether another append may be sent now."""
        if self.is_held_back:
            return False
        if self.pace is Pace.PROBE:
            return not self.is_probe_sent
        return len(self._inflight) < inflight_max

    def may_agree_at(self, index: Index) -> bool:
        """Return whether the follower may agree with us at `index`, as far as we know.

        A log that differs somewhere differs everywhere above it (log matching).
        """
        return self.rejected_at is None or self.rejected_at > index

    def sent(self, prev_end: Index, end: Index) -> None:
        """Note an append that was just sent and ends at `end`."""
        self.probed_at = prev_end
        if self.pace is Pace.PROBE:
            self.is_probe_sent = True
        elif end > self.next:
            self.next = end
            self._inflight.append(end)

    def accepted(self, match: Index, commit: Index) -> bool:
        """Note an accepted append; return whether `match` moved."""
        self.commit = max(self.commit, commit)
        while self._inflight and self._inflight[0] <= match:
            self._inflight.popleft()
        if self.pace is Pace.PROBE:
            self.pace = Pace.REPLICATE
            self.next = max(match, self.match)
        self.rejected_at = None
        self.is_probe_sent = False
        self.next = max(self.next, match)
        if match <= self.match:
            return False
        self.match = match
        return True

    def rejected(self, prev_end: Index, next_index: Index) -> None:
        """Note a rejection: go back to `next_index`, which the caller took from the hint."""
        self.pace = Pace.PROBE
        self.rejected_at = prev_end
        self.is_probe_sent = False
        self.next = max(self.match, next_index)
        self._inflight.clear()

    def installing(self) -> None:
        """Note that the follower was told to restart its log; send nothing until it answers."""
        self.pace = Pace.PROBE
        self.is_probe_sent = True
        self._inflight.clear()

    def stuck(self) -> None:
        """Note that we cannot read the next entry; retried when the follower answers."""
        self.pace = Pace.PROBE
        self.is_probe_sent = True
        self._inflight.clear()

    def nudge(self) -> None:
        """Allow one more append: the follower is alive, but earlier ones may be lost."""
        self.is_probe_sent = False
        if self._inflight:
            self._inflight.popleft()
