"""The core's two interfaces: the log that it reads, and the work that it requests.

The contract with the driver, for every input (`step`, `tick`, `propose`, `stable_at`, …):

1. give the input; several proposals may come in a row, any other input stands alone;
2. take `ready()` and carry it out, field by field from the top, before the next input;
3. do not wait for writes: entries go to the log, and count once it reports them durable
   (`stable_at`); only `messages` wait, and only for `hard_state`.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kafkaesque.entry import Entry, HardState, LogStart, Voters
from kafkaesque.errors import LogError
from kafkaesque.raft.messages import CoreMessage
from kafkaesque.types import Index, Offset, Term


class LogView(Protocol):
    """The log as the core reads it; every change shows at once, durable or not."""

    @property
    def start(self) -> LogStart:
        """Where the log starts."""
        ...

    @property
    def low(self) -> Offset:
        """Up to here records were deleted, durably, and must be deleted on every replica."""
        ...

    @property
    def end(self) -> Index:
        """The first index not in the log."""
        ...

    def term_at(self, index: Index) -> Term:
        """Return the term of the entry that covers `index`; also just before the start."""
        ...

    def term_start(self, index: Index) -> Index:
        """Return where the term that covers `index` was opened."""
        ...

    def voters(self) -> list[tuple[Index, Voters]]:
        """Return each change of members with its index, oldest first; never empty."""
        ...

    def boundary(self, index: Index) -> Index:
        """Return the first index of the batch that covers `index`; `index` itself elsewhere.

        Raises LogError if the disk cannot read it, as `entries` does.
        """
        ...

    def entries(self, first: Index, bytes_max: int) -> Sequence[Entry]:
        """Return entries starting at `first`, at least one if there is any; holes are skipped."""
        ...


class Ready(NamedTuple):
    """The work to do now. Carry it out from the top.

    A named tuple, because two are made for every batch on the hot path.
    """

    hard_state: HardState | None
    """Start to save this; until it is durable, hold back `messages` (of this and later Readys)."""

    has_lost: bool
    """The replica lacks entries it acknowledged: save with the hard state that it may not vote."""

    install: LogStart | None
    """Discard the log and restart it here."""

    truncate: Index | None
    """Cut the log at this index."""

    append: tuple[Entry, ...]
    """Add these to the log without waiting: `stable_at` reports when they are durable."""

    messages: tuple[CoreMessage, ...]
    """Send these once every earlier hard state is durable. They may get lost or duplicated."""

    commit: Index | None
    """Everything before this index is committed and may be applied and shown; None if unchanged."""

    is_recovered: bool
    """The replica has been refilled: note durably that it may vote again."""

    unreadable: LogError | None = None
    """Why the leader could not read its log for a follower. All other fields still hold."""
