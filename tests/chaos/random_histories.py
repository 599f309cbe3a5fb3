"""Random histories of a correct log, made from a seed; and errors to plant in them."""

import random
from collections.abc import Callable
from dataclasses import replace

from tests.chaos.findings import Kind
from tests.chaos.history import (
    NO_PARTITION,
    Accept,
    Assign,
    Commit,
    Committed,
    Delivery,
    Drained,
    Final,
    Op,
    Outcome,
    OutOfRange,
    Poll,
    Put,
    Send,
    Transaction,
    Visible,
)

GROUP = "readers"
_STEPS = 60
_FLIGHT_MAX = 4


class _Model:
    """One partition of a correct log, its producers and its consumers."""

    def __init__(self, chance: random.Random, partition: int) -> None:
        self._chance = chance
        self._partition = partition
        self._now = chance.randrange(1000)
        self._log: list[str] = []
        self._sent = 0
        self._at: dict[str, int] = {}
        self.ops: list[Op] = []

    def run(self) -> list[Op]:
        self._send("p1")  # so that there is something to lose
        self._poll("c1")
        for _ in range(_STEPS):
            match self._chance.randrange(8):
                case 0 | 1 | 2 | 3:
                    self._send(f"p{self._chance.randrange(2)}")
                case 4 | 5:
                    self._poll(f"c{self._chance.randrange(2)}")
                case 6:
                    self._assign(f"c{self._chance.randrange(2)}")
                case _:
                    self._commit()
        end = len(self._log)
        records = tuple(enumerate(self._log))
        for reader in ("f1", "f2"):
            begun = self._tick()
            self._add(
                Final,
                process=reader,
                begun=begun,
                ended=self._tick(),
                start=0,
                end=end,
                records=records,
            )
        return self.ops

    def _tick(self) -> int:
        self._now += 1 + self._chance.randrange(5)
        return self._now

    def _add(self, kind: type[Op], **fields: object) -> None:
        self.ops.append(kind(partition=self._partition, **fields))  # type: ignore[arg-type]

    def _send(self, process: str) -> None:
        """Send a few records at once, like producers; the answers arrive in order."""
        begun = self._tick()
        outcomes = self._chance.choices(
            (Outcome.OK, Outcome.UNKNOWN, Outcome.FAILED), (8, 1, 1), k=self._flight()
        )
        if not self._log:
            outcomes[0] = Outcome.OK
        for outcome in outcomes:
            self._sent += 1
            value = f"{process}:{self._partition}:{self._sent}"
            offset = None
            if outcome is Outcome.OK or (outcome is Outcome.UNKNOWN and self._chance.randrange(2)):
                if outcome is Outcome.OK:
                    offset = len(self._log)
                self._log.append(value)
            self._add(
                Send,
                process=process,
                begun=begun,
                ended=self._tick(),
                value=value,
                outcome=outcome,
                offset=offset,
            )

    def _flight(self) -> int:
        return 1 + self._chance.randrange(_FLIGHT_MAX)

    def _poll(self, process: str) -> None:
        at = self._at.setdefault(process, 0)
        begun = self._tick()
        records = tuple(enumerate(self._log))[at : at + 1 + self._chance.randrange(9)]
        self._at[process] = at + len(records)
        self._add(
            Poll,
            process=process,
            begun=begun,
            ended=self._tick(),
            records=records,
            group=GROUP if process == "c1" else "",
        )

    def _assign(self, process: str) -> None:
        """Group members may return to the committed offset, and never skip ahead."""
        last = self._at.get(process, 0) if process == "c1" else len(self._log)
        self._at[process] = self._chance.randrange(last + 1)
        now = self._tick()
        self._add(Assign, process=process, begun=now, ended=now)

    def _commit(self) -> None:
        offset = self._at.get("c1", 0)
        outcome = self._chance.choice((Outcome.OK, Outcome.OK, Outcome.UNKNOWN))
        begun = self._tick()
        fields = {"group": GROUP, "offset": offset}
        self._add(Commit, process="c1", begun=begun, ended=self._tick(), outcome=outcome, **fields)
        if outcome is Outcome.OK:
            begun = self._tick()
            self._add(Committed, process="c1", begun=begun, ended=self._tick(), **fields)


def _transactions(chance: random.Random) -> list[Op]:
    """Transactions of several records that are visible completely or not at all."""
    ops: list[Op] = []
    seen: list[str] = []
    outcomes = [Outcome.OK, *chance.choices(list(Outcome), k=_STEPS // 4)]
    for number, outcome in enumerate(outcomes):
        values = tuple(f"t:{number}:{place}" for place in range(2 + chance.randrange(3)))
        ops.append(
            Transaction(
                process="t",
                partition=NO_PARTITION,
                begun=2 * number,
                ended=2 * number + 1,
                values=values,
                outcome=outcome,
            )
        )
        if outcome is Outcome.OK or (outcome is Outcome.UNKNOWN and chance.randrange(2)):
            seen += values
    begun = 2 * len(outcomes)
    read = Visible(
        process="f", partition=NO_PARTITION, begun=begun, ended=begun + 1, values=tuple(seen)
    )
    return [*ops, read]


def _queue(chance: random.Random) -> list[Op]:
    """Records of a queue that are delivered until an acceptance counts, and then never again."""
    ops: list[Op] = []
    for number in range(_STEPS // 4):
        value, at = f"q:{number}", 100 * number
        ops.append(Put(process="q", partition=0, begun=at, ended=at + 1, value=value))
        is_done = False
        times = 0
        while not is_done:
            times += 1
            at += 10
            outcome = chance.choice(list(Outcome)) if times < 5 and number else Outcome.OK
            ops.append(_delivery(at, since=at, records=((number, value, times),)))
            if outcome is Outcome.FAILED:  # it is released
                continue
            ops.append(_accept(at + 1, value, outcome))
            is_done = outcome is Outcome.OK or chance.randrange(2) == 1
        if chance.randrange(2):  # received before, and shown late
            ops.append(_delivery(at + 9, since=at, records=((number, value, times),)))
            ops.append(_accept(at + 10, value, Outcome.UNKNOWN))
    end = 100 * _STEPS
    return [*ops, Drained(process="f", partition=0, begun=end, ended=end + 1, lag=0)]


def _delivery(at: int, since: int, records: tuple[tuple[int, str, int], ...]) -> Delivery:
    return Delivery(process="m", partition=0, begun=at, ended=at + 1, since=since, records=records)


def _accept(at: int, value: str, outcome: Outcome) -> Accept:
    return Accept(
        process="m", partition=0, begun=at, ended=at + 1, values=(value,), outcome=outcome
    )


def a_history(seed: int) -> list[Op]:
    """Return a history without errors."""
    chance = random.Random(seed)
    parts = [_Model(chance, partition).run() for partition in range(2)]
    parts.append(_transactions(chance))
    parts.append(_queue(chance))
    return sorted((op for part in parts for op in part), key=lambda op: op.begun)


Ops = list[Op]
Planter = Callable[[random.Random, Ops], Ops]


def _sends(ops: Ops, *outcomes: Outcome) -> list[Send]:
    return [op for op in ops if isinstance(op, Send) and op.outcome in outcomes]


def _everywhere(ops: Ops, change: Callable[[tuple[int, str]], tuple[int, str] | None]) -> Ops:
    """Change what all readers saw; None leaves a record out."""
    changed: Ops = []
    for op in ops:
        if isinstance(op, Poll | Final):
            seen = tuple(new for old in op.records if (new := change(old)) is not None)
            op = replace(op, records=seen)
        changed.append(op)
    return changed


def _swap(ops: Ops, old: Op, new: Op) -> Ops:
    return [new if op is old else op for op in ops]


def _lose(chance: random.Random, ops: Ops) -> Ops:
    victim = chance.choice(_sends(ops, Outcome.OK)).value
    return _everywhere(ops, lambda seen: None if seen[1] == victim else seen)


def _vanish(chance: random.Random, ops: Ops) -> Ops:
    poll = chance.choice([op for op in ops if isinstance(op, Poll) and op.records])
    victim = chance.choice(poll.records)[1]
    changed: Ops = []
    for op in ops:
        if isinstance(op, Final) and op.partition == poll.partition:
            op = replace(op, records=tuple(seen for seen in op.records if seen[1] != victim))
        changed.append(op)
    return changed


def _unread(chance: random.Random, ops: Ops) -> Ops:
    return [op for op in ops if not (isinstance(op, Final) and op.partition == 0)]


def _final(chance: random.Random, ops: Ops) -> Final:
    finals = [op for op in ops if isinstance(op, Final) and len(op.records) > 1]
    return chance.choice(finals)


def _duplicate(chance: random.Random, ops: Ops) -> Ops:
    final = _final(chance, ops)
    again = (final.end, chance.choice(final.records)[1])
    return _swap(ops, final, replace(final, records=(*final.records, again), end=final.end + 1))


def _reorder(chance: random.Random, ops: Ops) -> Ops:
    """Swap two records of one producer wherever they were read; answered offsets stay."""
    final = _final(chance, ops)
    process = chance.choice(final.records)[1].split(":")[0]
    own = [value for _, value in final.records if value.startswith(process)]
    if len(own) < 2:
        own = [value for _, value in final.records if not value.startswith(process)]
    first, second = sorted(chance.sample(own, 2), key=own.index)
    names = {first: second, second: first}
    return _everywhere(ops, lambda seen: (seen[0], names.get(seen[1], seen[1])))


def _phantom(chance: random.Random, ops: Ops) -> Ops:
    victim = chance.choice(_sends(ops, Outcome.OK)).value
    return _everywhere(ops, lambda seen: (seen[0], "of nobody") if seen[1] == victim else seen)


def _failed_read(chance: random.Random, ops: Ops) -> Ops:
    send = chance.choice(_sends(ops, Outcome.OK))
    return _swap(ops, send, replace(send, outcome=Outcome.FAILED, offset=None))


def _long_poll(chance: random.Random, ops: Ops) -> Poll:
    return chance.choice([op for op in ops if isinstance(op, Poll) and len(op.records) > 2])


def _back(chance: random.Random, ops: Ops) -> Ops:
    poll = _long_poll(chance, ops)
    return _swap(ops, poll, replace(poll, records=(*poll.records, poll.records[0])))


def _skip(chance: random.Random, ops: Ops) -> Ops:
    poll = _long_poll(chance, ops)
    at = chance.randrange(1, len(poll.records) - 1)
    return _swap(ops, poll, replace(poll, records=poll.records[:at] + poll.records[at + 1 :]))


def _group_skip(chance: random.Random, ops: Ops) -> Ops:
    """A record that no group member received, as if it were lost between two assignments."""
    poll = chance.choice([op for op in ops if isinstance(op, Poll) and op.group and op.records])
    at = max(
        offset
        for op in ops
        if isinstance(op, Poll) and op.group and op.partition == poll.partition
        for offset, _ in op.records
    )
    victim = chance.randrange(at)
    return [
        replace(op, records=tuple(seen for seen in op.records if seen[0] != victim))
        if isinstance(op, Poll) and op.partition == poll.partition
        else op
        for op in ops
    ]


def _out_of_range(chance: random.Random, ops: Ops) -> Ops:
    poll = chance.choice([op for op in ops if isinstance(op, Poll)])
    lost = OutOfRange(
        process=poll.process, partition=poll.partition, begun=poll.begun, ended=poll.ended
    )
    return [*ops, lost]


def _inconsistent(chance: random.Random, ops: Ops) -> Ops:
    final = _final(chance, ops)
    at = chance.randrange(len(final.records))
    records = list(final.records)
    records[at] = (records[at][0], records[at - 1][1])
    return _swap(ops, final, replace(final, records=tuple(records)))


def _wrong_offset(chance: random.Random, ops: Ops) -> Ops:
    """The answered offset is 0, as in an answer that was never filled in."""
    send = chance.choice([op for op in _sends(ops, Outcome.OK) if op.offset])
    return _swap(ops, send, replace(send, offset=0))


def _gap(chance: random.Random, ops: Ops) -> Ops:
    final = _final(chance, ops)
    at = chance.randrange(len(final.records))

    def moved(seen: tuple[int, str]) -> tuple[int, str]:
        return (seen[0] + 1, seen[1]) if seen[0] >= at else seen

    return _swap(ops, final, replace(final, records=tuple(map(moved, final.records))))


def _stale(chance: random.Random, ops: Ops) -> Ops:
    """Let a send start only after a later record was acknowledged."""
    sends = _sends(ops, Outcome.OK)
    first = next(op for op in sends if any(_is_later(other, op) for other in sends))
    later = chance.choice([op for op in sends if _is_later(op, first)])
    return _swap(ops, first, replace(first, begun=later.ended + 1, ended=later.ended + 2))


def _is_later(one: Send, other: Send) -> bool:
    if one.partition != other.partition or one.offset is None or other.offset is None:
        return False
    return one.offset > other.offset


def _stale_committed(chance: random.Random, ops: Ops) -> Ops:
    reads = [op for op in ops if isinstance(op, Committed)]
    read = chance.choice(reads)
    offset = chance.choice((None, -1, 10_000))
    return _swap(ops, read, replace(read, offset=offset))


def _transaction(chance: random.Random, ops: Ops, *outcomes: Outcome) -> Transaction:
    found = [op for op in ops if isinstance(op, Transaction) and op.outcome in outcomes]
    return chance.choice(found)


def _seen_instead(ops: Ops, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Ops:
    """Change what the last reader of transactions saw."""
    return [replace(op, values=change(op.values)) if isinstance(op, Visible) else op for op in ops]


def _lose_transaction(chance: random.Random, ops: Ops) -> Ops:
    lost = _transaction(chance, ops, Outcome.OK).values
    return _seen_instead(ops, lambda seen: tuple(one for one in seen if one not in lost))


def _tear_transaction(chance: random.Random, ops: Ops) -> Ops:
    lost = chance.choice(_transaction(chance, ops, Outcome.OK).values)
    return _seen_instead(ops, lambda seen: tuple(one for one in seen if one != lost))


def _double_transaction(chance: random.Random, ops: Ops) -> Ops:
    again = chance.choice(_transaction(chance, ops, Outcome.OK).values)
    return _seen_instead(ops, lambda seen: (*seen, again))


def _show_aborted(chance: random.Random, ops: Ops) -> Ops:
    shown = chance.choice(_transaction(chance, ops, Outcome.FAILED).values)
    return _seen_instead(ops, lambda seen: (*seen, shown))


def _accepted(chance: random.Random, ops: Ops) -> Accept:
    return chance.choice([op for op in ops if isinstance(op, Accept) and op.outcome is Outcome.OK])


def _accept_again(chance: random.Random, ops: Ops) -> Ops:
    accept = _accepted(chance, ops)
    return [*ops, replace(accept, begun=accept.ended + 8, ended=accept.ended + 9)]


def _deliver_again(chance: random.Random, ops: Ops) -> Ops:
    accept = _accepted(chance, ops)
    later = accept.ended + 1
    return [*ops, _delivery(later + 5, since=later, records=((7, accept.values[0], 1),))]


def _never_accept(chance: random.Random, ops: Ops) -> Ops:
    victim = (chance.choice([op for op in ops if isinstance(op, Put)]).value,)
    return [op for op in ops if not (isinstance(op, Accept) and op.values == victim)]


def _not_drain(chance: random.Random, ops: Ops) -> Ops:
    lag = chance.choice((-1, 1, 20))
    return [replace(op, lag=lag) if isinstance(op, Drained) else op for op in ops]


PLANTED: dict[Kind, Planter] = {
    Kind.LOST: _lose,
    Kind.VANISHED: _vanish,
    Kind.UNREAD: _unread,
    Kind.DUPLICATE: _duplicate,
    Kind.REORDERED: _reorder,
    Kind.PHANTOM: _phantom,
    Kind.FAILED_READ: _failed_read,
    Kind.NONMONOTONIC_POLL: _back,
    Kind.SKIPPED: _skip,
    Kind.GROUP_SKIPPED: _group_skip,
    Kind.OUT_OF_RANGE: _out_of_range,
    Kind.INCONSISTENT_OFFSET: _inconsistent,
    Kind.WRONG_OFFSET: _wrong_offset,
    Kind.GAP: _gap,
    Kind.STALE_OFFSET: _stale,
    Kind.STALE_COMMITTED: _stale_committed,
    Kind.TRANSACTION_LOST: _lose_transaction,
    Kind.TRANSACTION_TORN: _tear_transaction,
    Kind.TRANSACTION_DOUBLED: _double_transaction,
    Kind.ABORTED_READ: _show_aborted,
    Kind.ACCEPTED_AGAIN: _accept_again,
    Kind.DELIVERED_AGAIN: _deliver_again,
    Kind.NEVER_ACCEPTED: _never_accept,
    Kind.NOT_DRAINED: _not_drain,
}
