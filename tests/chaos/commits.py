"""Committed offsets of groups, checked as registers: a read returns the last write."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.findings import Finding, Kind
from tests.chaos.history import Commit, Committed, Op, Outcome


def stale_commits(ops: Sequence[Op]) -> Iterator[Finding]:
    """Yield every answer that no order of the concurrent commits explains."""
    writes: dict[tuple[str, int], list[Commit]] = defaultdict(list)
    for op in ops:
        if isinstance(op, Commit) and op.outcome is not Outcome.FAILED:
            writes[op.group, op.partition].append(op)
    for op in ops:
        if isinstance(op, Committed):
            yield from _explained(op, writes[op.group, op.partition])


def _explained(read: Committed, writes: Sequence[Commit]) -> Iterator[Finding]:
    settled = [w for w in writes if w.outcome is Outcome.OK and w.ended < read.begun]
    if read.offset is None:
        if settled:
            yield _finding(read, "there is no place, although one was committed", settled[-1])
        return
    candidates = [w for w in writes if w.offset == read.offset and w.begun < read.ended]
    if not candidates:
        yield _finding(read, f"{read.offset} was never committed")
        return
    # An unanswered commit may have taken effect at any later time.
    ends = [w.ended if w.outcome is Outcome.OK else read.ended for w in candidates]
    later = [w for w in settled if w.begun > max(ends)]
    if later:
        sentence = f"the place {read.offset} had been replaced by {later[-1].offset}"
        yield _finding(read, sentence, *candidates[-1:], later[-1])


def _finding(read: Committed, sentence: str, *writes: Commit) -> Finding:
    return Finding(
        kind=Kind.STALE_COMMITTED,
        partition=read.partition,
        sentence=f"group {read.group}: {sentence}",
        evidence=(*writes, read),
    )
