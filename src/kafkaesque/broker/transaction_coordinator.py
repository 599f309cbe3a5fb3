"""One partition of `__transaction_state` and the transactions on it: carries out decisions.

A decision is written first. Once it is committed its answer is given, and the partitions of those
transactions that it ends are told, through a `MarkerWriter`, until all of them know. Whoever leads
the partition next finds in its log what is decided and not yet complete, and goes on with it.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from kafkaesque.ages import Ages
from kafkaesque.broker.machine_host import MachineHost
from kafkaesque.broker.machine_snapshots import MachineSnapshots
from kafkaesque.broker.machine_trim import MachineSaver, trim_covered
from kafkaesque.broker.producer_ids import Give
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.transaction_ports import Marker, MarkerWriter
from kafkaesque.broker.watermark import Outcome
from kafkaesque.clock import Clock, clock_ages
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.errors import (
    DiskFull,
    InvalidTopic,
    KafkaesqueError,
    LogError,
    NotCoordinator,
    RaftError,
    StaleProducerEpoch,
    TransactionError,
    UnknownTopic,
)
from kafkaesque.machines.group_commands import Now
from kafkaesque.machines.transaction_commands import Decision, Producer, Reply, ReplyTo
from kafkaesque.machines.transaction_errors import (
    ConcurrentTransactions,
    CoordinatorFenced,
    ProducerIdNeeded,
)
from kafkaesque.machines.transaction_records import NO_PRODUCER, Place, State
from kafkaesque.machines.transactions import Transactions
from kafkaesque.transactional_ids import parse, sink_key

Decide: TypeAlias = Callable[[Transactions, Now, int], Decision]
"""Decides with the machine, the time, and a fresh producer id, which is NO_PRODUCER at first."""

CHECK_MS = 600_000
"""How often to look for ids to forget."""

WAIT_MS_MAX = 1_000
"""A request waits this long for the transaction before to end, then is told to ask again."""

WAITING_MAX = 10_000
"""Requests that wait for that."""

MARKER_RETRY_MS = 100
"""How soon to try again to end a transaction in a partition that did not take the marker."""

ANY_CONNECTION = 0
SETTLED = (UnknownTopic, InvalidTopic, StaleProducerEpoch, CoordinatorFenced)
"""Refusals that need no repetition: the partition is gone, or has been told by someone newer."""


class _Question(NamedTuple):
    transactional_id: str
    decide: Decide
    to: ReplyTo
    deadline_ms: int


class _Ending:
    """A transaction whose partitions are being told."""

    __slots__ = ("due_ms", "left", "marker")

    def __init__(self, marker: Marker, places: tuple[Place, ...]) -> None:
        self.marker = marker
        self.left = set(places)
        self.due_ms = 0


class TransactionCoordinator:
    """The transactions on one replica; whoever waits when leadership is lost is told so."""

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        config: TransactionConfig,
        snapshots: MachineSnapshots,
        failed: Callable[[LogError], None],
        next_producer_id: Callable[[Give], None],
        markers: MarkerWriter,
    ) -> None:
        self.replica = replica
        self.ages: Callable[[], Ages | None] = clock_ages(clock)
        """Says how old things are; None while the wall clock is in doubt."""
        self._clock = clock
        self._next_producer_id = next_producer_id
        self._markers = markers
        self._expires_ms = clock.monotonic_ms() + CHECK_MS
        self._endings: dict[str, _Ending] = {}
        self._waiting: dict[str, deque[_Question]] = {}
        self._waiting_count = 0
        self._connections: dict[str, int] = {}
        self._is_new = True
        """Whether what was decided before is still to be looked for."""
        self._config = config
        self._host = MachineHost(replica, clock, self._new, self._on_ready, failed, snapshots)
        self._host.on_lost = self._on_lost
        self._snapshots = snapshots
        self._saver = MachineSaver(replica, clock, self._new, failed, snapshots)

    def _new(self) -> Transactions:
        return Transactions(self._config)

    def configure(self, config: TransactionConfig) -> None:
        """Let other settings hold for what is decided from now on."""
        self._config = config
        if self._host.is_hosted:
            self._host.machine.configure(config)

    @property
    def is_hosted(self) -> bool:
        """Whether transactions are coordinated here now."""
        return self._host.is_hosted

    @property
    def open_count(self) -> int:
        """How many transactions are not ended everywhere."""
        return self._host.machine.open_count if self._host.is_hosted else 0

    @property
    def id_count(self) -> int:
        """How many transactional ids are known."""
        return len(self._host.machine) if self._host.is_hosted else 0

    @property
    def place_count(self) -> int:
        """How many partitions its transactions have together."""
        return self._host.machine.place_count if self._host.is_hosted else 0

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def ask(self, transactional_id: str, decide: Decide, to: ReplyTo) -> None:
        """Have something decided, and `to` told the answer; an error is an answer too.

        What cannot be decided before the transaction under this id is complete waits for that, but
        not for long: then `to` is told ConcurrentTransactions. What is decided of a query's sink is
        asked under `sink_key`, and waits for any transaction of that sink.
        """
        deadline_ms = self._clock.monotonic_ms() + WAIT_MS_MAX
        self._decide(_Question(transactional_id, decide, to, deadline_ms), NO_PRODUCER)

    def owns(self, transactional_id: str, connection: int) -> None:
        """Learn by which connection the present producer of an id has come."""
        self._connections[transactional_id] = connection

    def check_connection(self, transactional_id: str, connection: int) -> None:
        """Raise unless no younger connection was used for an id; of several the youngest counts.

        A producer gives up a connection on which an answer is overdue, and goes on over a new one.
        What is still to come over the old one must not hit the next transaction, which before
        transactions v2 has the same epoch.
        """
        if connection == ANY_CONNECTION:
            return
        if connection < self._connections.get(transactional_id, ANY_CONNECTION):
            raise NotCoordinator("the producer goes on over a younger connection")
        self._connections[transactional_id] = connection

    def _decide(self, question: _Question, fresh_id: int) -> None:
        to = question.to
        if not self._host.may_decide:
            to(_lost())
            return
        try:
            decision = question.decide(self._host.machine, self._now(), fresh_id)
        except ProducerIdNeeded:
            self._fetch_id(question)
            return
        except ConcurrentTransactions:
            self._wait(question)
            return
        except (TransactionError, NotCoordinator) as error:
            decision = Decision(replies=[Reply(to, error.with_traceback(None))])
        if not decision.replies:
            self._wait(question)
        self._carry_out(decision)

    def _fetch_id(self, question: _Question) -> None:
        def give(given: int | KafkaesqueError) -> None:
            if isinstance(given, KafkaesqueError):
                question.to(ProducerIdNeeded(f"no producer id can be had just now: {given}"))
            else:
                self._decide(question, given)

        self._next_producer_id(give)

    def _wait(self, question: _Question) -> None:
        is_late = self._clock.monotonic_ms() >= question.deadline_ms
        if is_late or self._waiting_count >= WAITING_MAX:
            question.to(ConcurrentTransactions("the transaction before is not yet ended"))
            return
        self._waiting.setdefault(question.transactional_id, deque()).append(question)
        self._waiting_count += 1

    def _retry(self, transactional_id: str) -> None:
        questions = self._waiting.pop(transactional_id, deque())
        self._waiting_count -= len(questions)
        for question in questions:
            self._decide(question, NO_PRODUCER)

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def tick(self) -> None:
        """Let time pass: save the state, abort what is open for too long, tell partitions again."""
        self._host.tick()
        self._saver.tick()
        trim_covered(self.replica, self._snapshots)
        if not self._host.may_decide:
            return
        if self._is_new:
            self._is_new = False
            self._look_for_ends()
        now = self._now()
        self._carry_out(self._host.machine.tick(now))
        if now.monotonic_ms >= self._expires_ms:
            self._expires_ms = now.monotonic_ms + CHECK_MS
            self._expire(now)
        for name in list(self._endings):
            ending = self._endings.get(name)
            if ending is not None and now.monotonic_ms >= ending.due_ms:
                self._tell(name, ending)
        for name in list(self._waiting):
            questions = self._waiting.get(name)  # none if a full disk has sent all of them away
            if questions and questions[0].deadline_ms <= now.monotonic_ms:
                self._retry(name)

    def stop(self) -> None:
        """Save the state before a clean stop."""
        self._host.stop()

    def close(self) -> None:
        """Coordinate no more, because the partition has left this broker."""
        self._host.close()

    def forget_topic(self, topic_id: bytes) -> None:
        """Nothing need be done: a partition that is gone needs no marker."""

    def _expire(self, now: Now) -> None:
        machine = self._host.machine
        self._carry_out(machine.expire(now))
        gone = [name for name in self._connections if machine.get(name) is None]
        for name in gone:
            del self._connections[name]

    # ── carrying out ─────────────────────────────────────────────────────────────────────────

    def _now(self) -> Now:
        clock = self._clock
        return Now(clock.monotonic_ms(), clock.now_ms(), self.ages())

    def _carry_out(self, decision: Decision) -> None:
        replies, records = decision.replies, decision.records

        def done(outcome: Outcome) -> None:
            for to, answer in replies:
                to(answer if outcome is Outcome.COMMITTED else _lost())
            if records and outcome is Outcome.COMMITTED:
                self._look_for_ends()

        try:
            if records:
                self._host.write(records, done)
            elif replies:
                self._host.when_committed(done)
        except RaftError:
            done(Outcome.UNKNOWN)
        except DiskFull:
            # What was decided is not written, so all must be what the log says it is.
            self._host.rebuild()
            done(Outcome.UNKNOWN)

    def _on_ready(self, _: Transactions) -> None:
        self._is_new = True

    def _on_lost(self, _: Transactions) -> None:
        self._endings.clear()
        self._connections.clear()
        waiting, self._waiting = self._waiting, {}
        self._waiting_count = 0
        for questions in waiting.values():
            for question in questions:
                question.to(_lost())

    # ── markers ──────────────────────────────────────────────────────────────────────────────

    def _look_for_ends(self) -> None:
        """Begin to tell the partitions of all that is decided, once that is committed."""
        if not self._host.is_hosted:
            return
        machine = self._host.machine
        for name in machine.ending():
            if name in self._endings:
                continue
            known = machine.get(name)
            assert known is not None
            marker = Marker(
                producer=Producer(known.producer_id, known.epoch),
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
                return  # asked again by and by
            ending.left.discard(place)
            self._complete_if_all_know(name, ending)

        self._markers.write(ending.marker, sorted(ending.left), told)
        self._complete_if_all_know(name, ending)

    def _complete_if_all_know(self, name: str, ending: _Ending) -> None:
        if ending.left or self._endings.get(name) is not ending or not self._host.may_decide:
            return  # during a hand-over it is looked at again with the next tick after that
        del self._endings[name]
        machine = self._host.machine
        self._carry_out(machine.completed(name, ending.marker.number, self._now()))
        self._retry(name)
        one = parse(name)
        if one is not None:
            self._retry(sink_key(one.query, one.sink))


def _lost() -> NotCoordinator:
    return NotCoordinator("this broker does not coordinate the transaction now")
