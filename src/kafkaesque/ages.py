"""How long ago something was, by a wall clock that was checked and may have been set meanwhile."""

from typing import NamedTuple

from msgspec import Struct

LEAPS_MAX = 100
"""Remembered one by one; older ones count together."""


class Leap(NamedTuple):
    """A wall clock was set ahead: over some time that did not pass."""

    before_ms: int
    """The latest that it had shown until then."""

    ms: int


class Ages(Struct, frozen=True, kw_only=True):
    """How old things are that bear a time of the wall clock, by one reading that was checked.

    A clock that was behind makes what it stamped look old as soon as it is set right. So the time
    over which it leapt counts for nothing that may have been stamped before.
    """

    now_ms: int
    leaps: tuple[Leap, ...] = ()

    def of(self, stamp_ms: int) -> int:
        """Return how long ago, at least, the wall clock showed this; below 0 it is yet to."""
        leapt_ms = sum(leap.ms for leap in self.leaps if stamp_ms <= leap.before_ms)
        return self.now_ms - stamp_ms - leapt_ms


def with_jump(leaps: tuple[Leap, ...], before_ms: int, jump_ms: int) -> tuple[Leap, ...]:
    """Return the leaps of a clock that jumped once more; a jump back undoes the last ones."""
    if jump_ms > 0:
        leaps = *leaps, Leap(before_ms, jump_ms)
    while jump_ms < 0 and leaps:  # ends: each turn drops a leap, or is the last
        *rest, (last_before_ms, last_ms) = leaps
        jump_ms += last_ms
        leaps = (*rest, Leap(last_before_ms, jump_ms)) if jump_ms > 0 else tuple(rest)
    if len(leaps) > LEAPS_MAX:
        first, second, *rest = leaps
        both = Leap(max(first.before_ms, second.before_ms), first.ms + second.ms)
        leaps = both, *rest
    return leaps
