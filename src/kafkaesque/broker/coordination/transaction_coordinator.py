"""Coordinates the transactions on one partition of `__transaction_state`.

A decision is written first. Once it is committed its response is sent, and a `MarkerWriter`
notifies the partitions of each ended transaction until all acknowledge. The partition's next leader
finds decisions that are not yet complete in its log, and continues with them.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar, cast

from msgspec.structs import replace

from kafkaesque.broker.coordination.producer_ids import Give
from kafkaesque.broker.machine_hosting.coordinator import Coordinator, lost
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.partition.partition_errors import StaleProducerEpoch
from kafkaesque.broker.partition.transaction_ports import MarkerWriter
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.errors import InvalidTopic, KafkaesqueError, NotCoordinator, UnknownTopic
from kafkaesque.machines.decision import Command, Decision, Now, Reply, ReplyTo
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    End,
    Init,
    OfSink,
    OfTransaction,
    Prepare,
    Verify,
)
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    CoordinatorFenced,
    ProducerIdNeeded,
)
from kafkaesque.machines.transactions.transaction_questions import Marker
from kafkaesque.machines.transactions.transaction_records import NO_PRODUCER, Place, State
from kafkaesque.machines.transactions.transactions import TransactionCommand, Transactions
from kafkaesque.transactional_ids import parse, sink_key

CHECK_MS = 600_000
"""How often to expire transactional ids."""

WAIT_MS_MAX = 1_000
"""How long a request waits for the previous transaction to end before its client must retry."""

WAITING_MAX = 10_000
"""The limit of requests that wait for that."""

MARKER_RETRY_MS = 100
"""The retry interval for partitions that did not accept a marker."""

ANY_CONNECTION = 0
SETTLED = (UnknownTopic, InvalidTopic, StaleProducerEpoch, CoordinatorFenced)
"""Errors that need no retry: the partition is gone, or got a newer marker."""

A = TypeVar("A")


class _Question(NamedTuple):
    command: TransactionCommand
    to: ReplyTo
    connection: int
    deadline_ms: int


class _Ending:
    """A transaction whose partitions are being notified."""

    __slots__ = ("due_ms", "left", "marker")

    def __init__(self, marker: Marker, places: tuple[Place, ...]) -> None:
        self.marker = marker
        self.left = set(places)
        self.due_ms = 0


class TransactionCoordinator(Coordinator[Transactions]):
    """The transactions on one replica, and the partitions to notify of their ends."""

    def __init__(
        self,
        site: MachineSite,
        config: TransactionConfig,
        next_producer_id: Callable[[Give], None],
        markers: MarkerWriter,
    ) -> None:
        self._config = config
        self._next_producer_id = next_producer_id
        self._markers = markers
        self._endings: dict[str, _Ending] = {}
        self._waiting: dict[str, deque[_Question]] = {}
        self._waiting_count = 0
        self._connections: dict[str, int] = {}
        self._is_new = True
        """Whether earlier decisions must still be looked up."""
        super().__init__(
            site,
            lambda: Transactions(self._config),
            expires_every_ms=CHECK_MS,
        )

    def configure(self, config: TransactionConfig) -> None:
        """Apply new settings to future decisions."""
        self._config = config
        if self.machine is not None:
            self.machine.configure(config)

    @property
    def open_count(self) -> int:
        """How many transactions have not ended everywhere."""
        return 0 if self.machine is None else self.machine.open_count

    @property
    def id_count(self) -> int:
        """How many transactional ids exist."""
        return 0 if self.machine is None else len(self.machine)

    @property
    def place_count(self) -> int:
        """How many partitions its transactions span in total."""
        return 0 if self.machine is None else self.machine.place_count

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def ask(
        self,
        command: Command[A],
        to: Callable[[A | KafkaesqueError], None],
        connection: int = ANY_CONNECTION,
    ) -> None:
        """Decide a command that arrived over a connection; `to` gets the answer.

        A command that cannot be decided before the current transaction of its id is complete waits
        briefly, then fails with ConcurrentTransactions. A command about a query's sink waits for
        any transaction of that sink.
        """
        deadline_ms = self._clock.monotonic_ms() + WAIT_MS_MAX
        asked = cast(TransactionCommand, command)
        self._decide(_Question(asked, to, connection, deadline_ms))

    def _decide(self, question: _Question, fresh_id: int = NO_PRODUCER) -> None:
        command, to = question.command, question.to
        if fresh_id != NO_PRODUCER:
            assert isinstance(command, Init | End), "no other command needs one"
            command = replace(command, fresh_id=fresh_id)
        if not self._host.may_decide:
            to(self._not_now())
            return
        machine = self._host.machine
        try:
            self._check_connection(command, question.connection, machine)
            decision = machine.decide(command, to, self._now())
        except ProducerIdNeeded:
            self._fetch_id(question)
            return
        except ConcurrentTransactions:
            self._wait(question)
            return
        except KafkaesqueError as error:
            decision = Decision(replies=[Reply(to, error.with_traceback(None))])
        if not decision.replies:
            self._wait(question)
        self._carry_out(decision)

    def _check_connection(
        self, command: TransactionCommand, connection: int, machine: Transactions
    ) -> None:
        """Raise if a younger connection was used for an id; the youngest wins.

        A producer gives up a connection whose response is overdue, and continues on a new one. Late
        requests on the old one must not affect the next transaction, which before transactions v2
        has the same epoch; since v2 the epoch alone fences it. A new producer with the same id may
        have an older connection than its predecessor, and any process that knows the id of a
        prepared transaction may end it.
        """
        if connection == ANY_CONNECTION:
            return
        match command:
            case Init(transactional_id=name):
                self._connections[name] = connection
            case End(bumps_epoch=True):
                pass
            case Add() | Verify() | End() | Prepare():
                name = command.transactional_id
                if machine.is_prepared(name):
                    return
                if connection < self._connections.get(name, ANY_CONNECTION):
                    raise NotCoordinator("the producer has moved to a younger connection")
                self._connections[name] = connection

    def _fetch_id(self, question: _Question) -> None:
        def give(given: int | KafkaesqueError) -> None:
            if isinstance(given, KafkaesqueError):
                question.to(ProducerIdNeeded(f"no producer id is available now: {given}"))
            else:
                self._decide(question, given)

        self._next_producer_id(give)

    def _wait(self, question: _Question) -> None:
        is_late = self._clock.monotonic_ms() >= question.deadline_ms
        if is_late or self._waiting_count >= WAITING_MAX:
            question.to(ConcurrentTransactions("the previous transaction has not ended yet"))
            return
        self._waiting.setdefault(_awaited(question.command), deque()).append(question)
        self._waiting_count += 1

    def _retry(self, key: str) -> None:
        questions = self._waiting.pop(key, deque())
        self._waiting_count -= len(questions)
        for question in questions:
            self._decide(question)

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def _pass_time(self, now: Now) -> None:
        """Abort overdue transactions, notify partitions again, and end waits that time out."""
        if self._is_new:
            self._is_new = False
            self._look_for_ends()
        super()._pass_time(now)
        for name in list(self._endings):
            ending = self._endings.get(name)
            if ending is not None and now.monotonic_ms >= ending.due_ms:
                self._tell(name, ending)
        for key in list(self._waiting):
            questions = self._waiting.get(key)  # none if a full disk has failed all of them
            if questions and questions[0].deadline_ms <= now.monotonic_ms:
                self._retry(key)

    def _on_ready(self, machine: Transactions) -> None:
        self._is_new = True

    def _on_committed(self) -> None:
        self._look_for_ends()

    def _on_expired(self) -> None:
        machine = self.machine
        if machine is not None:
            for name in [one for one in self._connections if machine.get(one) is None]:
                del self._connections[name]

    def _on_lost(self, machine: Transactions) -> None:
        super()._on_lost(machine)
        self._endings.clear()
        self._connections.clear()
        waiting, self._waiting = self._waiting, {}
        self._waiting_count = 0
        for questions in waiting.values():
            for question in questions:
                question.to(lost())

    # ── markers ──────────────────────────────────────────────────────────────────────────────

    def _look_for_ends(self) -> None:
        """Start to notify the partitions of all decisions, once those are committed."""
        if not self._host.is_hosted:
            return
        machine = self._host.machine
        for name in machine.ending():
            if name in self._endings:
                continue
            known = machine.get(name)
            assert known is not None
            marker = Marker(
                producer_id=known.producer_id,
                epoch=known.epoch,
                is_commit=known.state is State.PREPARE_COMMIT,
                coordinator_term=self.replica.raft.term,
                number=known.number,
            )
            ending = self._endings[name] = _Ending(marker, known.places)
            self._host.when_committed(partial(self._begin, name, ending))

    def _begin(self, name: str, ending: _Ending, outcome: Outcome) -> None:
        if outcome is Outcome.COMMITTED and self._endings.get(name) is ending:
            self._tell(name, ending)

    def _tell(self, name: str, ending: _Ending) -> None:
        ending.due_ms = self._clock.monotonic_ms() + MARKER_RETRY_MS

        def told(place: Place, error: KafkaesqueError | None) -> None:
            if error is not None and not isinstance(error, SETTLED):
                return  # retried later
            ending.left.discard(place)
            self._complete_if_all_know(name, ending)

        self._markers.write(ending.marker, sorted(ending.left), told)
        self._complete_if_all_know(name, ending)

    def _complete_if_all_know(self, name: str, ending: _Ending) -> None:
        if ending.left or self._endings.get(name) is not ending or not self._host.may_decide:
            return  # during a hand-over, the first tick after it checks again
        del self._endings[name]
        machine = self._host.machine
        self._carry_out(machine.completed(name, ending.marker.number, self._now()))
        self._retry(name)
        one = parse(name)
        if one is not None:
            self._retry(sink_key(one.query, one.sink))


def _awaited(command: TransactionCommand) -> str:
    """Return the key under which a command waits for the previous transaction."""
    match command:
        case OfSink(query=query, sink=sink):
            return sink_key(query, sink)
        case OfTransaction(transactional_id=name):
            return name
        case _:
            raise AssertionError(f"nothing stands in the way of {command}")
