"""What the checker can find, and how it says so."""

from dataclasses import dataclass
from enum import StrEnum

from tests.chaos.history import Op, to_line

EVIDENCE_MAX = 4
_LINE_CHARS_MAX = 300


class Kind(StrEnum):
    """What must never happen."""

    LOST = "lost"
    """It was acknowledged, and is not there in the end."""
    VANISHED = "vanished"
    """A consumer was given it, and it is not there in the end."""
    UNREAD = "unread"
    """Nobody read the partition in the end, so nothing can be said of it."""
    DUPLICATE = "duplicate"
    """An idempotent producer's record is there twice."""
    REORDERED = "reordered"
    """Records of one idempotent producer are not in the order in which it sent them."""
    PHANTOM = "phantom"
    """Nobody sent it."""
    FAILED_READ = "failed-read"
    """It was refused for sure, and yet it is there."""
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    """A consumer went back without having been told to."""
    SKIPPED = "skipped"
    """A consumer was not given a record that lies between two that it was given."""
    GROUP_SKIPPED = "group-skipped"
    """No member of a group was given a record, although one was given a later one."""
    OUT_OF_RANGE = "out-of-range"
    """A consumer was told that its place does not exist, and it did not invent that place."""
    INCONSISTENT_OFFSET = "inconsistent-offset"
    """Two different records were seen at one offset."""
    WRONG_OFFSET = "wrong-offset"
    """The producer was told an offset at which its record is not."""
    GAP = "gap"
    """Offsets are missing between the first and the last; ours are dense."""
    STALE_OFFSET = "stale-offset"
    """A record went to an offset that was known before it was sent."""
    STALE_COMMITTED = "stale-committed"
    """A group's place is one that had been replaced already, or that nobody committed."""
    TRANSACTION_LOST = "transaction-lost"
    """It was committed, and nothing of it is there in the end."""
    TRANSACTION_TORN = "transaction-torn"
    """Some of its records are there in the end, and some are not."""
    TRANSACTION_DOUBLED = "transaction-doubled"
    """A record of a transaction is there twice."""
    ABORTED_READ = "aborted-read"
    """It was aborted, and consumers of what is committed see a record of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that happened and must not, with the operations that show it."""

    kind: Kind
    partition: int
    sentence: str
    evidence: tuple[Op, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.kind}: partition {self.partition}: {self.sentence}"]
        lines += [f"    {to_line(op)[:_LINE_CHARS_MAX]}" for op in self.evidence[:EVIDENCE_MAX]]
        return "\n".join(lines)
