"""All transactional ids of one partition of `__transaction_state`.

A machine (`machines/machine.py`) whose decisions come with answers, like those of
`machines/groups/groups.py`. A raised error is an answer too, except for two: ProducerIdNeeded asks
for the same command with a new producer id; ConcurrentTransactions, like a decision without an
answer, for the same command once the transaction under this id is complete.

Transactions of a query's batches (`machines/transactions/sinks.py`) are decided together, and their
ids are forgotten once complete: each task attempt has its own.

Only the timeouts of open transactions are soft, and forgotten with leadership: each counts from the
transaction's start by the wall clock, but is never longer than the timeout from when the
transaction was first seen here.
"""

import heapq
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.transactions import transaction
from kafkaesque.machines.transactions.sinks import Sinks, check_not_older, names_of
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Added,
    BatchDecided,
    BatchDescribed,
    DecideBatch,
    DescribeBatch,
    Described,
    DescribeTransactions,
    DriverRegistered,
    End,
    Ended,
    Init,
    Inited,
    Prepare,
    Prepared,
    RegisterDriver,
    Verified,
    Verify,
)
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    InvalidTransactionalId,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    TooManyTransactions,
)
from kafkaesque.machines.transactions.transaction_records import (
    ENDING,
    NO_TIME,
    OPEN,
    Sink,
    SinkKey,
    State,
    Transaction,
    from_record,
    sink_to_record,
    to_record,
)
from kafkaesque.text_size import utf8_bytes
from kafkaesque.transactional_ids import parse

ID_BYTES_MAX = 1024
"""The longest transactional id: far above any in use."""

PLACES_MAX = 10_000
"""Partitions of one transaction: each one added rewrites all of them."""


DEADLINES_SPARE = 64
"""Deadlines are pruned once they exceed twice the open transactions by this many."""

TWO_PHASE_MS_MAX = 2**31 - 1
"""The longest timeout that Kafka's protocol can express."""


TransactionCommand: TypeAlias = (
    Init
    | Add
    | Verify
    | End
    | Prepare
    | RegisterDriver
    | DecideBatch
    | DescribeBatch
    | DescribeTransactions
)


class _Seen(NamedTuple):
    """One transaction in one of its states."""

    name: str
    producer_id: int
    number: int
    state: str


class Transactions:
    """The state that follows from all records so far."""

    def __init__(self, config: TransactionConfig) -> None:
        self._config = config
        self._known: dict[str, Transaction] = {}
        self._unfinished: dict[str, None] = {}
        """Open or ending transactions, in the order in which they started."""
        self._unseen: set[_Seen] = set()
        """Open transactions whose timeout is not running yet."""
        self._deadlines: list[tuple[int, _Seen]] = []
        self._places = 0
        self._sinks = Sinks(config)

    def configure(self, config: TransactionConfig) -> None:
        """Apply new settings to later decisions."""
        self._config = config

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the value of an id."""
        return self._known.get(transactional_id)

    def is_prepared(self, transactional_id: str) -> bool:
        """Return whether any client that knows the id may end its transaction."""
        known = self._known.get(transactional_id)
        return known is not None and known.state is State.PREPARED

    def ending(self) -> list[str]:
        """Return the ids whose partitions need the end marker."""
        return [name for name in self._unfinished if self._known[name].state in ENDING]

    @property
    def open_count(self) -> int:
        """How many transactions have not ended everywhere."""
        return len(self._unfinished)

    @property
    def place_count(self) -> int:
        """How many partitions all known transactions have; one may count several times."""
        return self._places

    def __len__(self) -> int:
        return len(self._known)

    # ── commands ─────────────────────────────────────────────────────────────────────────────

    def decide(self, command: TransactionCommand, to: ReplyTo, now: Now) -> Decision:
        """Decide on any command; refusals are raised."""
        match command:
            case Init():
                return self.init(command, to, now)
            case Add():
                return self.add(command, to, now)
            case Verify():
                return self.verify(command, to)
            case End():
                return self.end(command, to, now)
            case Prepare():
                return self.prepare(command, to, now)
            case RegisterDriver():
                return self.register(command, to, now)
            case DecideBatch():
                return self.decide_batch(command, to, now)
            case DescribeBatch():
                return self.describe_batch(command, to)
            case DescribeTransactions():
                return self.describe(command, to, now)

    # ── producers ────────────────────────────────────────────────────────────────────────────

    def init(self, command: Init, to: ReplyTo, now: Now) -> Decision:
        """Register a producer under an id; gives no answer if another must be aborted first."""
        name, config = command.transactional_id, self._config
        if not name or utf8_bytes(name) > ID_BYTES_MAX:
            raise InvalidTransactionalId("the transactional id is empty or too long")
        if command.is_two_phase:
            timeout_ms = min(config.prepared_ms_max, TWO_PHASE_MS_MAX)
            command = replace(command, timeout_ms=timeout_ms)
        elif not 0 < command.timeout_ms <= config.timeout_ms_max:
            raise InvalidTransactionTimeout(f"the timeout must be 1 to {config.timeout_ms_max} ms")
        self._sinks.check_came(name)
        known = self._known.get(name)
        if known is None and len(self._known) >= config.ids_max:
            raise TooManyTransactions(
                f"a coordinator has at most {config.ids_max} transactional ids"
            )
        after = transaction.init(known, command, now.wall_ms)
        out = self._changed(name, known, after)
        if after.state not in ENDING:
            kept = transaction.written_by(after) if after.state is State.PREPARED else None
            out.reply(to, Inited(producer=transaction.goes_on_as(after), kept=kept))
        return out

    def add(self, command: Add, to: ReplyTo, now: Now) -> Decision:
        """Add partitions to a transaction."""
        name, config = command.transactional_id, self._config
        known = self._known.get(name)
        after = transaction.add(known, command, now.wall_ms, PLACES_MAX)
        if name not in self._unfinished and len(self._unfinished) >= config.open_max:
            raise TooManyTransactions(
                f"a coordinator has at most {config.open_max} open transactions"
            )
        more = len(after.places) - _place_count(known)
        if more > 0 and self._places + more > config.places_max:
            raise TooManyTransactions(
                f"a coordinator has at most {config.places_max} partitions in open transactions"
            )
        out = self._changed(name, known, after)
        out.reply(to, Added(number=after.number))
        return out

    def verify(self, command: Verify, to: ReplyTo) -> Decision:
        """Check which partitions a producer may write to in its transaction."""
        known = self._known.get(command.transactional_id)
        missing = transaction.missing(known, command)
        assert known is not None
        out = Decision()
        out.reply(to, Verified(number=known.number, missing=missing))
        return out

    def end(self, command: End, to: ReplyTo, now: Now) -> Decision:
        """Decide how a transaction ends."""
        name = command.transactional_id
        if command.is_commit and parse(name) is not None:
            raise InvalidTransactionState("it is part of a batch and can only be committed with it")
        known = self._known.get(name)
        after = transaction.end(known, command, now.wall_ms)
        out = self._changed(name, known, after)
        out.reply(to, Ended(producer=transaction.goes_on_as(after)))
        return out

    def prepare(self, command: Prepare, to: ReplyTo, now: Now) -> Decision:
        """Prepare a transaction: any client that knows its id may end it."""
        name = command.transactional_id
        known = self._known.get(name)
        out = self._changed(name, known, transaction.prepare(known, command, now.wall_ms))
        out.reply(to, Prepared())
        return out

    # ── batches of queries ───────────────────────────────────────────────────────────────────

    def register(self, command: RegisterDriver, to: ReplyTo, now: Now) -> Decision:
        """Let a new driver take over a sink; undecided work of earlier drivers is aborted."""
        key = SinkKey(command.query, command.sink)
        after = self._sinks.registered(key, now.wall_ms)
        out = Decision(records=[sink_to_record(key, after)], is_one_batch=True)
        for name in self._sinks.ids(key):
            self._take_back(name, now, out)
        out.reply(to, DriverRegistered(driver_epoch=after.driver_epoch))
        return out

    def decide_batch(self, command: DecideBatch, to: ReplyTo, now: Now) -> Decision:
        """Decide which transactions a batch consists of; the first decision stands.

        Everything goes into one batch of records. The answer waits until all partitions know.
        """
        key = SinkKey(command.query, command.sink)
        sink = self._sinks.of_driver(key, command.driver_epoch)
        check_not_older(sink, command.batch)
        if sink.batch == command.batch:
            return self._decided_before(key, sink, command, to)
        after = self._sinks.decided(sink, command, self._known, now.wall_ms)
        out = Decision(records=[sink_to_record(key, after)], is_one_batch=True)
        names = self._sinks.ids(key, command.batch)
        for name in names:
            if name in command.producers:
                committed = transaction.decided(self._known[name], now.wall_ms)
                out.records.append(to_record(name, committed))
            else:
                self._take_back(name, now, out)
        if not any(name in self._unfinished for name in names):
            out.reply(to, BatchDecided(transactional_ids=(), was_decided_before=False))
        return out

    def describe_batch(self, command: DescribeBatch, to: ReplyTo) -> Decision:
        """Describe a batch's decision; raises OutdatedBatch for one before the newest."""
        key = SinkKey(command.query, command.sink)
        sink = self._sinks.get(key)
        names = None
        if sink is not None:
            check_not_older(sink, command.batch)
            names = names_of(key, sink) if sink.batch == command.batch else None
        out = Decision()
        out.reply(to, BatchDescribed(transactional_ids=names))
        return out

    def _decided_before(
        self, key: SinkKey, sink: Sink, command: DecideBatch, to: ReplyTo
    ) -> Decision:
        if not self._sinks.is_settled(key, command.batch):
            raise ConcurrentTransactions("the batch is decided, but has not ended everywhere yet")
        names = names_of(key, sink)
        is_same = sink.decided_by == command.driver_epoch and set(names) == set(command.producers)
        out = Decision()
        out.reply(to, BatchDecided(transactional_ids=names, was_decided_before=not is_same))
        return out

    def _take_back(self, name: str, now: Now, out: Decision) -> None:
        """Abort a transaction that is not part of its batch; if none is open, forget its id."""
        known = self._known[name]
        if known.state in OPEN:
            out.records.append(to_record(name, transaction.fenced(known, now.wall_ms)))
        elif known.state not in ENDING:
            out.records.append(to_record(name, None))

    # ── the coordinator ──────────────────────────────────────────────────────────────────────

    def completed(self, name: str, number: int, now: Now) -> Decision:
        """Record that all partitions of a transaction have the marker."""
        known = self._known.get(name)
        if known is None or known.number != number or known.state not in ENDING:
            return Decision()
        if parse(name) is not None:
            return Decision(records=[to_record(name, None)])
        return self._changed(name, known, transaction.completed(known, now.wall_ms))

    def tick(self, now: Now) -> Decision:
        """Handle what is due: abort transactions that are open for too long."""
        for seen in sorted(self._unseen):
            known = self._as_then(seen)
            if known is not None:
                due_ms = now.monotonic_ms + self._left_ms(known, now)
                heapq.heappush(self._deadlines, (due_ms, seen))
        self._unseen.clear()
        out = Decision()
        while self._deadlines and self._deadlines[0][0] <= now.monotonic_ms:
            _, seen = heapq.heappop(self._deadlines)
            known = self._as_then(seen)
            if known is not None:
                after = transaction.fenced(known, now.wall_ms, last_epoch=known.epoch)
                out.records.append(to_record(seen.name, after))
        if len(self._deadlines) > 2 * len(self._unfinished) + DEADLINES_SPARE:
            # Prepared ones would stay here for days after their end.
            self._deadlines = [one for one in self._deadlines if self._as_then(one[1])]
            heapq.heapify(self._deadlines)
        return out

    def forget_topic(self, topic_id: bytes) -> Decision:
        """Do nothing: a deleted partition needs no marker."""
        return Decision()

    def waiting(self) -> list[ReplyTo]:
        """Return nothing: undecided commands wait outside the machine."""
        return []

    def expire(self, now: Now) -> Decision:
        """Forget ids that have long been unused."""
        ages = now.ages
        if ages is None:
            return Decision()
        expiration_ms = self._config.id_expiration_ms
        gone = [
            name
            for name, known in self._known.items()
            if name not in self._unfinished and ages.of(known.changed_ms) >= expiration_ms
        ]
        out = Decision(records=[to_record(name, None) for name in gone])
        expiration_ms = self._config.sink_expiration_ms
        for key, sink in self._sinks.items():
            if ages.of(sink.changed_ms) >= expiration_ms and not self._sinks.ids(key):
                out.records.append(sink_to_record(key, None))
        return out

    def describe(self, command: DescribeTransactions, to: ReplyTo, now: Now) -> Decision:
        """Describe these ids, or all of them, as far as the filters match."""
        known, names = self._known, command.names
        some = known if names is None else [name for name in names if name in known]
        found = {name: known[name] for name in some if _is_wanted(known[name], command, now)}
        out = Decision()
        out.reply(to, Described(transactions=found))
        return out

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for an unknown one."""
        match from_record(record):
            case SinkKey() as key, (Sink() | None) as sink:
                self._sinks.apply(key, sink)
            case str(name), (Transaction() | None) as value:
                self._sinks.note(name, is_known=value is not None)
                self._apply(name, value)

    def _apply(self, name: str, value: Transaction | None) -> None:
        self._places += _place_count(value) - _place_count(self._known.get(name))
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
            self._unseen.add(_seen(name, value))

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the state."""
        for key, sink in self._sinks.items():
            yield sink_to_record(key, sink)
        for name, known in self._known.items():
            yield to_record(name, known)

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _changed(self, name: str, before: Transaction | None, after: Transaction) -> Decision:
        return Decision(records=[] if after is before else [to_record(name, after)])

    def _as_then(self, seen: _Seen) -> Transaction | None:
        """Return the value if the transaction is still as it was seen."""
        known = self._known.get(seen.name)
        return known if known is not None and _seen(seen.name, known) == seen else None

    def _left_ms(self, known: Transaction, now: Now) -> int:
        if known.state is State.PREPARED:
            limit_ms, since_ms = self._config.prepared_ms_max, known.changed_ms
        else:
            limit_ms, since_ms = known.timeout_ms, known.began_ms
        if now.ages is None:
            return limit_ms
        return min(max(limit_ms - now.ages.of(since_ms), 0), limit_ms)


def _is_wanted(known: Transaction, command: DescribeTransactions, now: Now) -> bool:
    if command.states is not None and known.state not in command.states:
        return False
    if command.producer_ids is not None and known.producer_id not in command.producer_ids:
        return False
    if command.older_than_ms < 0:
        return True
    return known.began_ms != NO_TIME and now.wall_ms - known.began_ms > command.older_than_ms


def _place_count(known: Transaction | None) -> int:
    return 0 if known is None else len(known.places)


def _seen(name: str, known: Transaction) -> _Seen:
    return _Seen(name, known.producer_id, known.number, known.state.value)
