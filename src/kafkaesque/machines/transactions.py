"""All transactional ids of one partition of `__transaction_state`.

A machine (`machines/machine.py`) whose decisions come with answers, as those of
`machines/groups.py`. An error that is raised is an answer too, but for two: ProducerIdNeeded asks
for the same command with a fresh id, and ConcurrentTransactions, like a decision without an answer,
for the same command once the transaction under this id is complete.

Soft, and forgotten with leadership, is only when an open transaction times out: counted from its
beginning by the wall clock, but never longer than its time-out from when it was first seen here.
"""

import heapq
from collections.abc import Callable, Collection, Iterator

from kafkaesque.config import TransactionConfig
from kafkaesque.machines import transaction
from kafkaesque.machines.group_commands import Now
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.transaction_commands import (
    Add,
    Added,
    Decision,
    Described,
    End,
    Ended,
    Init,
    Inited,
    Prepare,
    Prepared,
    ReplyTo,
    Verified,
    Verify,
)
from kafkaesque.machines.transaction_errors import (
    InvalidTransactionalId,
    InvalidTransactionTimeout,
    TooManyTransactions,
)
from kafkaesque.machines.transaction_records import (
    ENDING,
    OPEN,
    State,
    Transaction,
    from_record,
    to_record,
)

ID_BYTES_MAX = 1024
"""The longest transactional id: far above any that is in use."""

PLACES_MAX = 10_000
"""Partitions of one transaction: all of them are written anew with each that is added."""


class Transactions:
    """What follows from all records so far."""

    def __init__(self, config: TransactionConfig) -> None:
        self._config = config
        self._known: dict[str, Transaction] = {}
        self._unfinished: dict[str, None] = {}
        """Those open or ending, in the order in which they began."""
        self._unseen: set[tuple[str, int, str]] = set()
        """Those open whose time-out does not run yet."""
        self._deadlines: list[tuple[int, str, int, str]] = []

    def get(self, transactional_id: str) -> Transaction | None:
        """Return what is known under an id."""
        return self._known.get(transactional_id)

    def ending(self) -> list[str]:
        """Return the ids whose partitions are to be told of the end."""
        return [name for name in self._unfinished if self._known[name].state in ENDING]

    @property
    def open_count(self) -> int:
        """How many transactions are not ended everywhere."""
        return len(self._unfinished)

    def __len__(self) -> int:
        return len(self._known)

    # ── producers ────────────────────────────────────────────────────────────────────────────

    def init(self, command: Init, to: ReplyTo, now: Now) -> Decision:
        """Let a producer come under an id; no answer if another must be aborted first."""
        name, config = command.transactional_id, self._config
        if not name or len(name.encode()) > ID_BYTES_MAX:
            raise InvalidTransactionalId("this cannot be a transactional id")
        if not 0 < command.timeout_ms <= config.timeout_ms_max:
            raise InvalidTransactionTimeout(f"a time-out has 1 to {config.timeout_ms_max} ms")
        known = self._known.get(name)
        if known is None and len(self._known) >= config.ids_max:
            raise TooManyTransactions(f"a coordinator has at most {config.ids_max} ids")
        after = transaction.init(known, command, now.wall_ms)
        out = self._changed(name, known, after)
        if after.state not in ENDING:
            out.reply(to, Inited(producer=transaction.goes_on_as(after)))
        return out

    def add(self, command: Add, to: ReplyTo, now: Now) -> Decision:
        """Let partitions belong to a transaction."""
        name, config = command.transactional_id, self._config
        known = self._known.get(name)
        after = transaction.add(known, command, now.wall_ms, PLACES_MAX)
        if name not in self._unfinished and len(self._unfinished) >= config.open_max:
            raise TooManyTransactions(f"a coordinator has {config.open_max} open transactions")
        out = self._changed(name, known, after)
        out.reply(to, Added(number=after.number))
        return out

    def verify(self, command: Verify, to: ReplyTo) -> Decision:
        """Say which partitions a producer may write to in its transaction."""
        known = self._known.get(command.transactional_id)
        missing = transaction.missing(known, command)
        assert known is not None
        out = Decision()
        out.reply(to, Verified(number=known.number, missing=missing))
        return out

    def end(self, command: End, to: ReplyTo, now: Now) -> Decision:
        """Decide how a transaction ends."""
        name = command.transactional_id
        known = self._known.get(name)
        after = transaction.end(known, command, now.wall_ms)
        out = self._changed(name, known, after)
        out.reply(to, Ended(producer=transaction.goes_on_as(after)))
        return out

    def prepare(self, command: Prepare, to: ReplyTo, now: Now) -> Decision:
        """Leave a transaction to whoever knows its id."""
        name = command.transactional_id
        known = self._known.get(name)
        out = self._changed(name, known, transaction.prepare(known, command, now.wall_ms))
        out.reply(to, Prepared())
        return out

    # ── the coordinator ──────────────────────────────────────────────────────────────────────

    def completed(self, name: str, number: int, now: Now) -> Decision:
        """Learn that all partitions of a transaction know of its end."""
        known = self._known.get(name)
        if known is None or known.number != number or known.state not in ENDING:
            return Decision()
        return self._changed(name, known, transaction.completed(known, now.wall_ms))

    def tick(self, now: Now) -> Decision:
        """Let time pass: abort what is open for too long."""
        for name, number, state in sorted(self._unseen):
            known = self._as_then(name, number, state)
            if known is not None:
                due_ms = now.monotonic_ms + self._left_ms(known, now)
                heapq.heappush(self._deadlines, (due_ms, name, number, state))
        self._unseen.clear()
        out = Decision()
        while self._deadlines and self._deadlines[0][0] <= now.monotonic_ms:
            _, name, number, state = heapq.heappop(self._deadlines)
            known = self._as_then(name, number, state)
            if known is not None:
                after = transaction.fenced(known, now.wall_ms, last_epoch=known.epoch)
                out.records.append(to_record(name, after))
        return out

    def expire(self, now: Now) -> Decision:
        """Forget ids that nobody has used for long."""
        before_ms = now.wall_ms - self._config.id_expiration_ms
        gone = [
            name
            for name, known in self._known.items()
            if name not in self._unfinished and known.changed_ms <= before_ms
        ]
        return Decision(records=[to_record(name, None) for name in gone])

    def describe(
        self, names: Collection[str] | None, to: ReplyTo, wanted: Callable[[Transaction], bool]
    ) -> Decision:
        """Show these ids, or all of them, as far as they are wanted."""
        known = self._known
        some = known if names is None else [name for name in names if name in known]
        found = {name: known[name] for name in some if wanted(known[name])}
        out = Decision()
        out.reply(to, Described(transactions=found))
        return out

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for one that we do not know."""
        name, value = from_record(record)
        if value is None:
            self._known.pop(name, None)
            self._unfinished.pop(name, None)
            return
        before = self._known.get(name)
        self._known[name] = value
        if value.state not in OPEN and value.state not in ENDING:
            self._unfinished.pop(name, None)
            return
        self._unfinished[name] = None
        is_news = before is None or (before.number, before.state) != (value.number, value.state)
        if is_news and value.state in OPEN:
            self._unseen.add((name, value.number, value.state.value))

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the state."""
        for name, known in self._known.items():
            yield to_record(name, known)

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _changed(self, name: str, before: Transaction | None, after: Transaction) -> Decision:
        return Decision(records=[] if after is before else [to_record(name, after)])

    def _as_then(self, name: str, number: int, state: str) -> Transaction | None:
        """Return what is known if the transaction is still the one that was seen."""
        known = self._known.get(name)
        is_same = known is not None and (known.number, known.state.value) == (number, state)
        return known if is_same else None

    def _left_ms(self, known: Transaction, now: Now) -> int:
        if known.state is State.PREPARED:
            limit_ms, since_ms = self._config.prepared_ms_max, known.changed_ms
        else:
            limit_ms, since_ms = known.timeout_ms, known.began_ms
        return min(max(since_ms + limit_ms - now.wall_ms, 0), limit_ms)
