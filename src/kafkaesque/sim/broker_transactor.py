"""A producer with a transactional id on a simulated cluster, and the answers it got.

`sim/broker_transactors.py` checks the results.
"""

import random
from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.callbacks import ignore
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.groups.group_commands import (
    Commit,
    Committed,
    Fetched,
    FetchOffsets,
    Identity,
    TransactionalCommit,
)
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Added,
    End,
    Ended,
    Inited,
    Prepared,
    Producer,
)
from kafkaesque.machines.transactions.transaction_errors import TransactionError
from kafkaesque.machines.transactions.transaction_questions import Check
from kafkaesque.machines.transactions.transaction_records import Place
from kafkaesque.sim.broker_life import (
    ANSWER_MS_MAX,
    LEDGER,
    PARTITIONS,
    TIMEOUT_MS,
    TRIES_MAX,
    Life,
    Living,
    Resume,
    Step,
)
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation

ZOMBIE = b"of a zombie"
WAITS = 5
"""Pauses for which a prepared transaction is left alone: together longer than its timeout."""


class Truth(Enum):
    """What a producer knows about the end of a transaction."""

    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


class Tale:
    """One transaction: its written values, and how its producer believes it ended."""

    def __init__(self, name: str, number: int) -> None:
        self.name = f"{name}.{number}"
        self.number = number
        self.values: list[bytes] = []
        self.has_offset = False
        self.truth = Truth.OPEN


class Transactor(Living):
    """One producer with a transactional id, which consumes nothing and produces to LEDGER."""

    def __init__(
        self, world: BrokerWorld, chance: random.Random, name: str, *, is_v2: bool
    ) -> None:
        super().__init__(world, chance, name)
        self.tales: list[Tale] = []
        self._is_v2 = is_v2
        self._producer = Producer(-1, -1)
        self._sequences: dict[int, int] = {}
        self._zombie: Producer | None = None

    # ── behaviour ────────────────────────────────────────────────────────────────────────────

    def _live(self) -> Life:
        while True:
            yield self._pause(50)
            found = yield self._init(self.name)
            if not isinstance(found, Inited):
                continue
            if self._producer.producer_id >= 0:
                self._zombie = self._producer
            self._take(found.producer)
            self._world.count("transactional producers")
            while (yield from self._transact()):
                pass

    def _take(self, producer: Producer) -> None:
        if producer != self._producer:
            self._producer = producer
            self._sequences = {}

    def _transact(self) -> Life:
        """Do one transaction; return whether the producer may continue with the next."""
        tale = Tale(self.name, len(self.tales) + 1)
        self.tales.append(tale)
        if self._zombie is not None and self._chance.random() < 0.3:
            yield from self._rise()
        for index in self._chance.sample(range(PARTITIONS), 1 + self._chance.randrange(3)):
            for _ in range(1 + self._chance.randrange(2)):
                if not (yield from self._write(tale, index)):
                    return False
        if self._chance.random() < 0.4 and not (yield from self._commit_offset(tale)):
            return False
        if self._chance.random() < 0.1:
            yield self._pause(2 * TIMEOUT_MS)  # it is aborted meanwhile
        is_prepared = False
        if self._chance.random() < 0.15:
            is_prepared = yield from self._leave()
        is_commit = self._chance.random() < 0.8
        return (yield from self._end(tale, is_commit=is_commit, is_prepared=is_prepared))

    def _leave(self) -> Life:
        """Prepare, and let the timeout pass; return whether it is prepared."""
        answer = yield self._prepare(self.name, self._producer)
        if not isinstance(answer, Prepared):
            return False
        self._world.count("transactions prepared")
        for _ in range(WAITS):
            yield self._pause(ANSWER_MS_MAX)
        return True

    def _write(self, tale: Tale, index: int) -> Life:
        value = f"{tale.name}.{len(tale.values)}".encode()
        tale.values.append(value)
        for _ in range(TRIES_MAX):
            if not self._is_v2 and not isinstance((yield self._add(LEDGER, index)), Added):
                continue
            sequence = self._sequences.get(index, 0)
            outcome = yield self._send(
                self.name, index, self._producer, sequence, value, adds=self._is_v2
            )
            if outcome is Outcome.COMMITTED:
                self._sequences[index] = self._sequences.get(index, 0) + 1
                return True
            yield self._pause(30)
        self._world.count("transactional writes given up")
        return False

    def _commit_offset(self, tale: Tale) -> Life:
        for _ in range(TRIES_MAX):
            if not self._is_v2:
                index = self._group_index()
                added = None if index is None else (yield self._add(OFFSETS_TOPIC, index))
                if not isinstance(added, Added):
                    yield self._pause(30)
                    continue
            if isinstance((yield self._commit(tale.number)), Committed):
                tale.has_offset = True
                return True
            yield self._pause(30)
        tale.has_offset = True  # it may have been kept all the same
        return False

    def _end(self, tale: Tale, *, is_commit: bool, is_prepared: bool) -> Life:
        tries = TRIES_MAX if self._chance.random() < 0.8 else 1
        for _ in range(tries):
            before, tale.truth = tale.truth, Truth.UNKNOWN
            answer = yield self._ask(self._end_of(self._producer, is_commit=is_commit))
            if isinstance(answer, Ended):
                tale.truth = Truth.COMMITTED if is_commit else Truth.ABORTED
                self._world.count("transactions committed" if is_commit else "transactions aborted")
                self._take(answer.producer)
                return True
            if isinstance(answer, TransactionError):
                if before is Truth.OPEN and is_prepared:
                    raise Violation(f"{tale.name} was prepared, and could not be ended: {answer!r}")
                if before is Truth.OPEN:
                    tale.truth = Truth.ABORTED  # by the coordinator, after the timeout
                return False
            yield self._pause(50)
        self._world.count("transactions of unknown end")
        return False

    def _rise(self) -> Life:
        """Continue as the replaced producer; it must be refused."""
        assert self._zombie is not None
        index = self._chance.randrange(PARTITIONS)
        sequence = self._sequences.get(index, 0)
        sent = yield self._send(self.name, index, self._zombie, sequence, ZOMBIE, adds=self._is_v2)
        ended = yield self._ask(self._end_of(self._zombie, is_commit=True))
        if isinstance(ended, Ended):
            raise Violation(f"{self.name}: a fenced producer has ended a transaction")
        if isinstance(sent, KafkaesqueError) and isinstance(ended, TransactionError):
            self._world.count("zombies refused")

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def _end_of(self, producer: Producer, *, is_commit: bool) -> End:
        return End(
            transactional_id=self.name,
            producer=producer,
            is_commit=is_commit,
            bumps_epoch=self._is_v2,
        )

    def _add(self, topic_name: str, index: int) -> Step:
        producer = self._producer

        def ask(resume: Resume, broker: Broker) -> None:
            topic = broker.catalog.topics.get(topic_name)
            if topic is None:
                resume(None)
                return
            places: list[Place] = [(topic.topic_id, index)]
            others = [t for t in broker.catalog.topics.values() if t.name.startswith("topic-")]
            if others and self._chance.random() < 0.2:  # which may be deleted before the end
                places.append((self._chance.choice(others).topic_id, 0))
            add = Add(transactional_id=self.name, producer=producer, places=tuple(places))
            coordinator = broker.transactions.coordinators.of(self.name)
            coordinator.ask(add, resume)

        return lambda resume: self._at(self._coordinator(self.name), partial(ask, resume), resume)

    def _commit(self, offset: int) -> Step:
        producer = self._producer
        commit = Commit(
            group=self.name,
            generation=-1,
            member=Identity(member_id=""),
            offsets=(((b"\xff" * 16, 0), offset, -1, ""),),
        )
        command = TransactionalCommit(commit=commit, producer_id=producer.producer_id)

        def ask(resume: Resume, broker: Broker) -> None:
            coordinator = broker.coordinators.of(self.name)
            topic = broker.catalog.topics[OFFSETS_TOPIC]
            guard = coordinator.guards.begin(producer.producer_id)

            def checked(answer: int | KafkaesqueError) -> None:
                is_fresh = coordinator.guards.end(producer.producer_id, guard)
                if isinstance(answer, KafkaesqueError) or not is_fresh:
                    resume(answer)
                elif coordinator.has_ended(producer.producer_id, answer):
                    resume(None)
                else:
                    coordinator.ask(command, resume)

            check = Check(
                transactional_id=self.name,
                producer_id=producer.producer_id,
                epoch=producer.epoch,
                place=(topic.topic_id, partition_of(self.name, topic.partitions)),
                adds=self._is_v2,
            )
            broker.transactions.desk.check(check, checked)

        def start(resume: Resume) -> None:
            self._at(self._coordinator(self.name, OFFSETS_TOPIC), partial(ask, resume), resume)

        return start

    def fetch(self, found: Callable[[int], None]) -> None:
        """Fetch the group's offset, which advances with each transaction."""

        def reply(answer: object) -> None:
            if isinstance(answer, Fetched):
                kept = answer.offsets.get((b"\xff" * 16, 0))
                found(0 if kept is None else kept.offset)

        def ask(broker: Broker) -> None:
            coordinator = broker.coordinators.of(self.name)
            coordinator.ask(FetchOffsets(group=self.name), reply)

        self._at(self._coordinator(self.name, OFFSETS_TOPIC), ask, ignore)

    def _topic(self, name: str) -> Topic | None:
        machine = self._any()
        if machine is None or machine.broker is None:
            return None
        return machine.broker.catalog.topics.get(name)

    def _group_index(self) -> int | None:
        self._coordinator(self.name, OFFSETS_TOPIC)  # creates the topic
        topic = self._topic(OFFSETS_TOPIC)
        return None if topic is None else partition_of(self.name, topic.partitions)
