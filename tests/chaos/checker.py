"""Finds violations of a broker's guarantees in a history, and shows the operations that prove them.

The method is that of Jepsen's Kafka tests, for topics without retention and compaction: every value
is sent once, so the offsets where it is read identify it. Answers are taken at their word; what was
not answered may have happened or not. Transactions and queues have separate topics
(`transactions.py`, `deliveries.py`).
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.commits import stale_commits
from tests.chaos.deliveries import accepted_records, broken_deliveries, delivered_again
from tests.chaos.findings import Finding, Kind
from tests.chaos.history import (
    NO_PARTITION,
    Assign,
    Final,
    Op,
    Outcome,
    OutOfRange,
    Poll,
    Send,
    Transaction,
)
from tests.chaos.transactions import broken_transactions

SHOWN_MAX = 10
"""How many findings of each kind a report shows; the others are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The findings, and how many operations were checked."""

    findings: tuple[Finding, ...]
    sends: Counter[Outcome]
    polled: int
    transactions: Counter[Outcome]
    accepted: int
    """Records of a queue."""
    redelivered: int
    """Deliveries from a queue that were not the first one of their record."""

    @property
    def is_clean(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    @property
    def kinds(self) -> Counter[Kind]:
        """The number of findings of each kind."""
        return Counter(finding.kind for finding in self.findings)

    def report(self) -> str:
        """Return the findings with their evidence, the first few of each kind."""
        shown: Counter[Kind] = Counter()
        lines = [f"{kind}: {count}" for kind, count in self.kinds.most_common()]
        for finding in self.findings:
            shown[finding.kind] += 1
            if shown[finding.kind] <= SHOWN_MAX:
                lines.append(str(finding))
        return "\n".join(lines)


def check(ops: Sequence[Op]) -> Verdict:
    """Check everything that is known of all partitions."""
    parts: dict[int, list[Op]] = defaultdict(list)
    for op in ops:
        if op.partition != NO_PARTITION:
            parts[op.partition].append(op)
    findings: list[Finding] = []
    for number in sorted(parts):
        findings += _Partition(number, parts[number]).findings()
    findings += stale_commits(ops)
    findings += broken_transactions(ops)
    findings += broken_deliveries(ops)
    return Verdict(
        findings=tuple(findings),
        sends=Counter(op.outcome for op in ops if isinstance(op, Send)),
        polled=sum(len(op.records) for op in ops if isinstance(op, Poll | Final)),
        transactions=Counter(op.outcome for op in ops if isinstance(op, Transaction)),
        accepted=accepted_records(ops),
        redelivered=delivered_again(ops),
    )


class _Partition:
    """One partition: who sent what, and what was read where."""

    def __init__(self, number: int, ops: Sequence[Op]) -> None:
        self._number = number
        self._ops = ops
        # Answers may have been recorded in a different order than the sends.
        self._sends = sorted(
            (op for op in ops if isinstance(op, Send)), key=lambda send: send.begun
        )
        self._finals = [op for op in ops if isinstance(op, Final)]
        self._sent = {op.value: op for op in self._sends}
        self._at: dict[int, dict[str, Op]] = defaultdict(dict)
        """What was read at each offset, and which operation read it first."""
        self._places: dict[str, dict[int, Op]] = defaultdict(dict)
        for op in ops:
            if isinstance(op, Poll | Final):
                for offset, value in op.records:
                    self._at[offset].setdefault(value, op)
                    self._places[value].setdefault(offset, op)
        self._offsets = sorted(self._at)

    def findings(self) -> Iterator[Finding]:
        """Yield everything that is wrong."""
        yield from self._missing()
        yield from self._strange()
        yield from self._offsets_told()
        yield from self._order()
        yield from self._stale()
        yield from self._consumers()
        yield from self._groups()
        yield from self._gaps()

    def _finding(self, kind: Kind, sentence: str, *evidence: Op) -> Finding:
        return Finding(kind=kind, partition=self._number, sentence=sentence, evidence=evidence)

    def _missing(self) -> Iterator[Finding]:
        """Find values that were acknowledged or read and are missing in the end."""
        if not self._finals:
            if self._sends:
                yield self._finding(Kind.UNREAD, "it was not read in the end")
            return
        for final in self._finals:
            kept = {value for _, value in final.records}
            for send in self._sends:
                if send.outcome is Outcome.OK and send.value not in kept:
                    yield self._finding(Kind.LOST, f"{send.value} was acknowledged", send)
            for value, places in self._places.items():
                if value not in kept:
                    seen = next(iter(places.values()))
                    yield self._finding(Kind.VANISHED, f"{value} was read", seen)

    def _strange(self) -> Iterator[Finding]:
        """Find values that should not exist, or exist twice."""
        for value, places in self._places.items():
            send = self._sent.get(value)
            if send is None:
                yield self._finding(Kind.PHANTOM, f"{value} was never sent", *places.values())
                continue
            if send.outcome is Outcome.FAILED:
                yield self._finding(Kind.FAILED_READ, f"{value} failed", send, *places.values())
            if len(places) > 1 and send.is_idempotent:
                sentence = f"{value} is at {sorted(places)}"
                yield self._finding(Kind.DUPLICATE, sentence, send, *places.values())

    def _offsets_told(self) -> Iterator[Finding]:
        """Find offsets with two values, and acknowledgements with a wrong offset."""
        for offset, values in self._at.items():
            if len(values) > 1:
                sentence = f"offset {offset} is {' and '.join(sorted(values))}"
                yield self._finding(Kind.INCONSISTENT_OFFSET, sentence, *values.values())
        for send in self._sends:
            if send.outcome is not Outcome.OK or send.offset is None:
                continue
            places = self._places.get(send.value)
            if places and send.offset not in places:
                sentence = f"{send.value} is at {sorted(places)}, told was {send.offset}"
                yield self._finding(Kind.WRONG_OFFSET, sentence, send, *places.values())

    def _order(self) -> Iterator[Finding]:
        """Find records that precede an earlier one of the same producer."""
        last: dict[str, tuple[int, Send]] = {}
        for send in self._sends:
            places = self._places.get(send.value)
            if not places or not send.is_idempotent:
                continue
            offset = min(places)
            highest = last.get(send.process)
            if highest is not None and offset < highest[0]:
                sentence = f"{send.value} at {offset} was sent after {highest[1].value}"
                yield self._finding(Kind.REORDERED, sentence, highest[1], send)
            if highest is None or offset > highest[0]:
                last[send.process] = (offset, send)

    def _stale(self) -> Iterator[Finding]:
        """Find records at an offset that was known before they were sent."""
        times: list[int] = []
        highest: list[tuple[int, Op]] = []
        for ended, offset, op in sorted(self._known(), key=lambda known: known[0]):
            if not highest or offset > highest[-1][0]:
                times.append(ended)
                highest.append((offset, op))
        for send in self._sends:
            landed = self._landed(send)
            before = bisect_left(times, send.begun)  # strictly before: equal times prove nothing
            if landed is not None and before and highest[before - 1][0] >= landed:
                known, witness = highest[before - 1]
                sentence = f"{send.value} went to {landed} when {known} was known"
                yield self._finding(Kind.STALE_OFFSET, sentence, witness, send)

    def _known(self) -> Iterator[tuple[int, int, Op]]:
        for op in self._ops:
            if isinstance(op, Send) and op.outcome is Outcome.OK and op.offset is not None:
                yield op.ended, op.offset, op
            elif isinstance(op, Poll) and op.records:
                yield op.ended, max(offset for offset, _ in op.records), op

    def _landed(self, send: Send) -> int | None:
        if send.outcome is Outcome.OK and send.offset is not None:
            return send.offset
        places = self._places.get(send.value)
        return min(places) if places else None

    def _consumers(self) -> Iterator[Finding]:
        """Find consumers that were moved back, or past a record."""
        last: dict[str, tuple[int, Poll]] = {}
        for op in self._ops:
            if isinstance(op, Assign):
                last.pop(op.process, None)
            elif isinstance(op, OutOfRange):
                yield self._finding(Kind.OUT_OF_RANGE, f"{op.process} was led astray", op)
            elif isinstance(op, Poll):
                for offset, _ in op.records:
                    before = last.get(op.process)
                    if before is not None:
                        yield from self._step(before, offset, op)
                    last[op.process] = (offset, op)

    def _step(self, before: tuple[int, Poll], offset: int, op: Poll) -> Iterator[Finding]:
        at, poll = before
        if offset <= at:
            sentence = f"{op.process} was given {offset} after {at}"
            yield self._finding(Kind.NONMONOTONIC_POLL, sentence, poll, op)
            return
        if offset == at + 1:
            return
        skipped = self._offsets[bisect_left(self._offsets, at + 1) :][: offset - at]
        skipped = [between for between in skipped if between < offset]
        if skipped:
            sentence = f"{op.process} was given {offset} after {at}, and there is {skipped[0]}"
            yield self._finding(Kind.SKIPPED, sentence, poll, op)

    def _groups(self) -> Iterator[Finding]:
        """Find records that no member of a group received; all groups start at the beginning."""
        given: dict[str, dict[int, Poll]] = defaultdict(dict)
        for op in self._ops:
            if isinstance(op, Poll) and op.group:
                for offset, _ in op.records:
                    given[op.group].setdefault(offset, op)
        for group, polls in given.items():
            last = max(polls)
            missed = [at for at in self._offsets if at < last and at not in polls]
            if missed:
                sentence = f"group {group} was given {last}, and never {missed[0]}"
                yield self._finding(Kind.GROUP_SKIPPED, sentence, polls[last])

    def _gaps(self) -> Iterator[Finding]:
        for final in self._finals:
            expected = final.start
            for offset, value in final.records:
                if offset != expected:
                    sentence = f"{value} is at {offset}, where {expected} should be"
                    yield self._finding(Kind.GAP, sentence, final)
                    break
                expected += 1
            else:
                if expected != final.end:
                    sentence = f"the last is {expected - 1}, the end is {final.end}"
                    yield self._finding(Kind.GAP, sentence, final)
