"""How long ago something was, by a wall clock that was checked and may have been set meanwhile."""

from msgspec import Struct


class Ages(Struct, frozen=True, kw_only=True):
    """How old things are that bear a time of the wall clock, by one reading that was checked."""

    now_ms: int

    def of(self, stamp_ms: int) -> int:
        """Return how long ago the wall clock showed this; below 0 it is yet to."""
        return self.now_ms - stamp_ms
