"""Checks transactions as wholes: committed ones are there once, aborted ones are not.

Their records are in a separate topic. Each value is sent once, so the final reading of that topic
shows how each transaction ended.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.findings import Finding, Kind
from tests.chaos.history import NO_PARTITION, Op, Outcome, Transaction, Visible


def broken_transactions(ops: Sequence[Op]) -> Iterator[Finding]:
    """Yield every transaction that differs from what its producer was answered."""
    transactions = [op for op in ops if isinstance(op, Transaction)]
    readings = [op for op in ops if isinstance(op, Visible)]
    if transactions and not readings:
        yield _finding(Kind.UNREAD, "the transactions were not read in the end")
    for reading in readings:
        seen = Counter(reading.values)
        for one in transactions:
            yield from _as_told(one, seen, reading)


def _as_told(one: Transaction, seen: Counter[str], reading: Visible) -> Iterator[Finding]:
    there = [value for value in one.values if seen[value]]
    twice = [value for value in there if seen[value] > 1]
    if twice:
        yield _finding(Kind.TRANSACTION_DOUBLED, f"{twice[0]} is there twice", one, reading)
    if one.outcome is Outcome.FAILED and there:
        yield _finding(Kind.ABORTED_READ, f"{there[0]} was aborted", one, reading)
    if one.outcome is Outcome.OK and not there:
        yield _finding(Kind.TRANSACTION_LOST, f"{one.values[0]} was committed", one, reading)
    if one.outcome is not Outcome.FAILED and 0 < len(there) < len(one.values):
        missing = next(value for value in one.values if not seen[value])
        sentence = f"{there[0]} is there, {missing} of the same transaction is not"
        yield _finding(Kind.TRANSACTION_TORN, sentence, one, reading)


def _finding(kind: Kind, sentence: str, *evidence: Op) -> Finding:
    return Finding(kind=kind, partition=NO_PARTITION, sentence=sentence, evidence=evidence)
