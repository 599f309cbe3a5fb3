"""Checks a share group: nothing that was accepted comes again, and nothing is forgotten.

A consumer may show a record long after it received it; meanwhile another one may have accepted it,
because a lock ran out or a leader changed. So two things prove that an accepted record came again:
it was delivered to a consumer that did not exist when the acceptance was confirmed, or a second
acceptance was confirmed. One without an answer may count or not.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.findings import Finding, Kind
from tests.chaos.history import Accept, Delivery, Drained, Op, Outcome, Put
from tests.chaos.job import DELIVERIES_MAX


def broken_deliveries(ops: Sequence[Op]) -> Iterator[Finding]:
    """Yield every record that came again after its acceptance, or was never accepted."""
    accepted: dict[str, Accept] = {}
    """The confirmed acceptances that ended first."""
    tried: set[str] = set()
    for op in sorted((op for op in ops if isinstance(op, Accept)), key=lambda op: op.ended):
        tried.update(op.values)
        for value in op.values if op.outcome is Outcome.OK else ():
            if value in accepted:
                sentence = f"{value} was accepted, and accepted again"
                yield _finding(Kind.ACCEPTED_AGAIN, sentence, accepted[value], op)
            else:
                accepted[value] = op
    deliveries = [op for op in ops if isinstance(op, Delivery)]
    for delivery in deliveries:
        for offset, value, _ in delivery.records:
            before = accepted.get(value)
            if before is not None and before.ended < delivery.since:
                sentence = f"{value} at {offset} was accepted, and delivered to a later consumer"
                yield _finding(Kind.DELIVERED_AGAIN, sentence, before, delivery)
    given_up = {
        value
        for delivery in deliveries
        for _, value, times in delivery.records
        if times >= DELIVERIES_MAX
    }
    yield from _forgotten(ops, tried | given_up)


def _forgotten(ops: Sequence[Op], done: set[str]) -> Iterator[Finding]:
    puts = [op for op in ops if isinstance(op, Put)]
    ends = [op for op in ops if isinstance(op, Drained)]
    if puts and not ends:
        yield _finding(Kind.UNREAD, "the queue was not emptied in the end", puts[0])
    for put in puts if ends else ():
        if put.value not in done:
            yield _finding(Kind.NEVER_ACCEPTED, f"{put.value} was written", put)
    for end in ends:
        if end.lag:
            yield _finding(Kind.NOT_DRAINED, f"{end.lag} records are left, -1 is unknown", end)


def delivered_again(ops: Sequence[Op]) -> int:
    """Return how many deliveries were not the first one of their record."""
    times = Counter(value for op in ops if isinstance(op, Delivery) for _, value, _ in op.records)
    return times.total() - len(times)


def accepted_records(ops: Sequence[Op]) -> int:
    """Return how many records were accepted, and that was confirmed."""
    accepts = [op for op in ops if isinstance(op, Accept) and op.outcome is Outcome.OK]
    return len({value for op in accepts for value in op.values})


def _finding(kind: Kind, sentence: str, *evidence: Op) -> Finding:

    return Finding(kind=kind, partition=evidence[0].partition, sentence=sentence, evidence=evidence)
