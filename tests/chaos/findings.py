"""The kinds of findings of the checker."""

from dataclasses import dataclass
from enum import StrEnum

from tests.chaos.history import Op, to_line

EVIDENCE_MAX = 4
_LINE_CHARS_MAX = 300


class Kind(StrEnum):
    """What must never happen."""

    LOST = "lost"
    """It was acknowledged and is missing in the end."""
    VANISHED = "vanished"
    """A consumer received it and it is missing in the end."""
    UNREAD = "unread"
    """The partition was not read in the end, so nothing can be concluded."""
    DUPLICATE = "duplicate"
    """An idempotent producer's record exists twice."""
    REORDERED = "reordered"
    """Records of one idempotent producer are not in the order of their sends."""
    PHANTOM = "phantom"
    """It was never sent."""
    FAILED_READ = "failed-read"
    """It was definitely refused and still exists."""
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    """A consumer went back without a new assignment."""
    SKIPPED = "skipped"
    """A consumer missed a record between two that it received."""
    GROUP_SKIPPED = "group-skipped"
    """No group member received a record, although one received a later one."""
    OUT_OF_RANGE = "out-of-range"
    """A consumer got "offset out of range" for an offset that it did not make up."""
    INCONSISTENT_OFFSET = "inconsistent-offset"
    """Two different records were seen at one offset."""
    WRONG_OFFSET = "wrong-offset"
    """The producer was given an offset that is not its record's."""
    GAP = "gap"
    """Offsets are missing between the first and the last; ours are dense."""
    STALE_OFFSET = "stale-offset"
    """A record got an offset that was known before it was sent."""
    STALE_COMMITTED = "stale-committed"
    """A group's committed offset was already replaced, or was never committed."""
    TRANSACTION_LOST = "transaction-lost"
    """The transaction was committed and is missing in the end."""
    TRANSACTION_TORN = "transaction-torn"
    """Only some records of the transaction exist in the end."""
    TRANSACTION_DOUBLED = "transaction-doubled"
    """A record of a transaction exists twice."""
    ABORTED_READ = "aborted-read"
    """The transaction was aborted, and readers of committed records see one of its records."""
    ACCEPTED_AGAIN = "accepted-again"
    """Two acceptances of one record of a queue were confirmed."""
    DELIVERED_AGAIN = "delivered-again"
    """A record of a queue was delivered although its acceptance had been confirmed."""
    NEVER_ACCEPTED = "never-accepted"
    """A record of a queue was acknowledged to its producer and never reached a member."""
    NOT_DRAINED = "not-drained"
    """Records of a queue remain in the end, and are not delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violation, with the operations that show it."""

    kind: Kind
    partition: int
    sentence: str
    evidence: tuple[Op, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.kind}: partition {self.partition}: {self.sentence}"]
        lines += [f"    {to_line(op)[:_LINE_CHARS_MAX]}" for op in self.evidence[:EVIDENCE_MAX]]
        return "\n".join(lines)
