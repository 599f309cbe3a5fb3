"""The two doors of the core: the log that it looks at, and what it wants done.

The contract with the driver, for every input (`step`, `tick`, `propose`, `stable_at`, …):

1. give the input; several proposals may come in a row, any other input stands alone;
2. take `ready()` and carry it out, field by field from the top, before the next input;
3. writing is not waiting: entries are handed to the log and count when it says they are durable
   (`stable_at`); only `messages` wait, and only for `hard_state`.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kafkaesque.entry import Entry, HardState, LogStart, Voters
from kafkaesque.errors import LogError
from kafkaesque.raft.messages import CoreMessage
from kafkaesque.types import Index, Offset, Term


class LogView(Protocol):
    """What the core reads of the log, which shows every change at once, durable or not."""

    @property
    def start(self) -> LogStart:
        """Where the log begins."""
        ...

    @property
    def low(self) -> Offset:
        """Up to here records were deleted, durably, and are to be deleted on every replica."""
        ...

    @property
    def end(self) -> Index:
        """The first index not in the log."""
        ...

    def term_at(self, index: Index) -> Term:
        """Return the term of what covers `index`; also for the one just before the start."""
        ...

    def term_start(self, index: Index) -> Index:
        """Return where the term that covers `index` was opened."""
        ...

    def voters(self) -> list[tuple[Index, Voters]]:
        """Return who belongs to the group since which index, oldest first; never empty."""
        ...

    def boundary(self, index: Index) -> Index:
        """Return the first index of the batch that covers `index`; `index` itself elsewhere.

        Raises LogError where the disk does not give it back, as `entries` does.
        """
        ...

    def entries(self, first: Index, bytes_max: int) -> Sequence[Entry]:
        """Return entries from `first` on, at least one if there is one; holes are skipped."""
        ...


class Ready(NamedTuple):
    """What is to be done now. Carry it out from the top.

    A named tuple, because two are made for every batch on the hot path.
    """

    hard_state: HardState | None
    """Begin to save this; until it is durable, hold back `messages` (of this and later Readys)."""

    has_lost: bool
    """The replica lacks what it acknowledged: save with the hard state that it may not vote."""

    install: LogStart | None
    """Throw the log away and begin anew here."""

    truncate: Index | None
    """Cut the log from this index on."""

    append: tuple[Entry, ...]
    """Add these to the log. Nobody waits for them: `stable_at` says when they are durable."""

    messages: tuple[CoreMessage, ...]
    """Send these once every hard state given so far is durable. They may get lost or doubled."""

    commit: Index | None
    """Everything before this index is committed and may be applied and shown; None if unchanged."""

    is_recovered: bool
    """The replica has been refilled: note durably that it may vote again."""

    unreadable: LogError | None = None
    """What kept the leader from reading its log for a follower. All else in here holds."""
