"""Ages by a wall clock that was checked and may have been set meanwhile."""

from typing import NamedTuple

from msgspec import Struct

LEAPS_MAX = 100
"""Older leaps are merged into one."""


class Leap(NamedTuple):
    """A wall clock was set ahead, past time that did not elapse."""

    before_ms: int
    """The latest time it had shown before."""

    ms: int


class Ages(Struct, frozen=True, kw_only=True):
    """How old timestamped things are, by one checked reading of the wall clock.

    A clock that was behind makes its earlier stamps look old as soon as it is corrected. So a leap
    does not count towards the age of anything that may have been stamped before it.
    """

    now_ms: int
    leaps: tuple[Leap, ...] = ()

    def of(self, stamp_ms: int) -> int:
        """Return the minimum age of a stamp; negative if it is still in the future."""
        leapt_ms = sum(leap.ms for leap in self.leaps if stamp_ms <= leap.before_ms)
        return self.now_ms - stamp_ms - leapt_ms


def with_jump(leaps: tuple[Leap, ...], before_ms: int, jump_ms: int) -> tuple[Leap, ...]:
    """Return the leaps after one more jump; a jump back undoes the latest leaps."""
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
