"""Decides whether to trust this broker's wall clock before anything is deleted by age.

A clock that is an hour ahead makes fresh records look old, and deleted records do not come back
when the clock is corrected. So brokers send each other the time, and a broker deletes by age only
while

- a majority of the cluster, itself included, has about the same time, and
- its wall clock has not jumped against the monotonic one, unless that majority has jumped too.

A doubt that no broker confirms ends on its own after a while: otherwise a lone broker whose clock
was corrected, or one whose peers are gone, would fill its disk. A contradiction counts until it is
resolved. A lone broker that starts with a wrong clock cannot know.

A clock that was behind is trusted as soon as it is right, and what it stamped before then looks
old. So the time that a clock skips when it is set ahead does not count towards the age of older
records, until this broker restarts (`kafkaesque.ages.Ages`).
"""

from collections.abc import Callable, Collection
from enum import StrEnum

from msgspec import Struct

from kafkaesque.ages import Ages, Leap, with_jump
from kafkaesque.clock import Clock
from kafkaesque.config import HousekeepingConfig
from kafkaesque.events import ClockBelieved, ClockInDoubt, Events
from kafkaesque.types import NodeId


class ClockTold(Struct, frozen=True, kw_only=True):
    """A message between brokers: the sender's wall time."""

    source: NodeId
    target: NodeId
    wall_ms: int


class Doubt(StrEnum):
    """Why a wall clock is not trusted."""

    UNHEARD = "unheard"
    STEPPED = "stepped"
    APART = "apart"


class _Heard(Struct, frozen=True):
    ahead_ms: int
    """How far our wall clock was ahead of the other broker's."""

    at_ms: int
    """When it was received, by our monotonic clock."""


class WallClocks:
    """One broker's knowledge of its own clock and those of the others."""

    def __init__(
        self,
        node: NodeId,
        clock: Clock,
        config: HousekeepingConfig,
        tell: Callable[[ClockTold], None],
        events: Events,
    ) -> None:
        self.doubt: Doubt | None = Doubt.UNHEARD
        self.ahead_ms = 0
        """How far the clock seems to be ahead of the true time; below 0 it is behind."""
        self._node = node
        self._clock = clock
        self._config = config
        self._tell = tell
        self._events = events
        self._heard: dict[NodeId, _Heard] = {}
        wall_ms = clock.now_ms()
        self._seen = Ages(now_ms=wall_ms)
        """The ages as of the last look."""
        self._leaps: tuple[Leap, ...] = ()
        self._latest_ms = wall_ms
        """The latest time that the wall clock has shown."""
        self._last = wall_ms, clock.monotonic_ms()
        """The wall and monotonic clocks at the last look."""
        self._tells_ms = 0
        self._jumped_ms = 0
        """How far the wall clock has jumped; 0 once that was accepted."""
        self._doubted_since_ms = clock.monotonic_ms()

    @property
    def is_sound(self) -> bool:
        """Whether anything may be deleted by age."""
        return self.doubt is None

    @property
    def ages(self) -> Ages | None:
        """How old things are, as of the last look; None while the clock is in doubt.

        Code that deletes by age must use this, not the clock, which may have jumped since.
        """
        return self._seen if self.doubt is None else None

    @property
    def text(self) -> str:
        """What operators must know of the clock; empty if all is well, or not judged yet."""
        if self.doubt is None or self.doubt is Doubt.UNHEARD:
            return ""
        seconds, is_ahead = abs(self.ahead_ms) // 1000, self.ahead_ms > 0
        if self.doubt is Doubt.APART:
            found = f"is {seconds} s {'ahead of' if is_ahead else 'behind'} that of other brokers"
        else:
            found = f"has jumped {'ahead' if is_ahead else 'back'} by {seconds} s"
        return f"the wall clock {found}; nothing is deleted by age meanwhile"

    def tick(self, others: Collection[NodeId]) -> None:
        """Check the clocks, and send the time to the other brokers if that is due."""
        wall_ms, now_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        self._notice_jump(wall_ms, now_ms)
        self._seen = Ages(now_ms=wall_ms, leaps=self._leaps)
        self._judge(others, now_ms)
        if now_ms >= self._tells_ms:
            self._tells_ms = now_ms + self._config.clock_look_ms
            for one in others:
                self._tell(ClockTold(source=self._node, target=one, wall_ms=wall_ms))

    def receive(self, told: ClockTold) -> None:
        """Take another broker's time; the delay of the message makes us look ahead."""
        ahead_ms = self._clock.now_ms() - told.wall_ms
        self._heard[told.source] = _Heard(ahead_ms, self._clock.monotonic_ms())

    def _notice_jump(self, wall_ms: int, now_ms: int) -> None:
        jump_ms = (wall_ms - self._last[0]) - (now_ms - self._last[1])
        is_jump = abs(jump_ms) > self._config.clock_apart_ms_max
        self._latest_ms = max(self._latest_ms, wall_ms - jump_ms if is_jump else wall_ms)
        if is_jump:
            self._leaps = with_jump(self._leaps, self._latest_ms, jump_ms)
            self._jumped_ms += jump_ms
            self._heard.clear()  # they were compared with the clock before the jump
            self._doubted_since_ms = now_ms
        if is_jump or now_ms - self._last[1] >= self._config.clock_look_ms:
            self._last = wall_ms, now_ms

    def _judge(self, others: Collection[NodeId], now_ms: int) -> None:
        apart_ms_max = self._config.clock_apart_ms_max
        oldest_ms = now_ms - self._config.clock_heard_ms_max
        heard = [h.ahead_ms for n, h in self._heard.items() if n in others and h.at_ms >= oldest_ms]
        apart = [ahead_ms for ahead_ms in heard if abs(ahead_ms) > apart_ms_max]
        near = len(heard) - len(apart)
        doubt: Doubt | None = None
        if abs(self._jumped_ms) > apart_ms_max:
            doubt = Doubt.STEPPED
        if others:
            if 2 * (1 + near) > 1 + len(others):
                doubt = None
            elif apart:
                doubt = Doubt.APART
            elif doubt is None:
                doubt = Doubt.UNHEARD
        self._conclude(doubt, apart, now_ms)

    def _conclude(self, doubt: Doubt | None, apart: list[int], now_ms: int) -> None:
        if doubt is None or doubt is Doubt.APART:
            self._doubted_since_ms = now_ms
        elif now_ms - self._doubted_since_ms >= self._config.clock_pause_ms:
            doubt = None
        if doubt is None:
            self._jumped_ms = 0
        self.ahead_ms = self._jumped_ms
        if doubt is Doubt.APART:
            self.ahead_ms = sorted(apart)[len(apart) // 2]
        if doubt is not self.doubt:
            said, self.doubt = self.text, doubt
            if self.text:
                self._events.tell(ClockInDoubt(node=self._node, text=self.text))
            elif said:
                self._events.tell(ClockBelieved(node=self._node))
