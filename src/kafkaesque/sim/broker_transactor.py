"""A producer with a transactional id on a simulated cluster, and what it was told.

Its life is a generator that yields what it asks for and is sent the answer, or None when none came
in time: brokers die under it. It finds leaders and coordinators by asking any broker, as Kafka's
clients do. `sim/broker_transactors.py` checks what came of it.
"""

import random
from collections.abc import Callable, Generator
from enum import Enum, auto
from functools import partial
from typing import Any, TypeAlias

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.broker.partition import Appended
from kafkaesque.broker.transaction_coordinator import Decide
from kafkaesque.broker.transaction_ports import Check
from kafkaesque.broker.transactions import STATE_TOPIC, Writing
from kafkaesque.broker.watermark import Outcome
from kafkaesque.errors import KafkaesqueError, TransactionError
from kafkaesque.machines.catalog import Topic
from kafkaesque.machines.group_commands import (
    Commit,
    Committed,
    Fetched,
    Identity,
    Now,
    TransactionalCommit,
)
from kafkaesque.machines.transaction_commands import (
    Add,
    Added,
    Decision,
    End,
    Ended,
    Init,
    Inited,
    Producer,
    ReplyTo,
)
from kafkaesque.machines.transaction_records import Place
from kafkaesque.machines.transactions import Transactions
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation

LEDGER = "ledger"
PARTITIONS = 3
_TIMEOUT_MS = 1_500
_ANSWER_MS_MAX = 700
_TRIES_MAX = 4
ZOMBIE = b"of a zombie"

Resume: TypeAlias = Callable[[object], None]
Step: TypeAlias = Callable[[Resume], None]
Life: TypeAlias = Generator[Step, Any, Any]


class Truth(Enum):
    """What a producer knows of the end of a transaction."""

    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


class Tale:
    """One transaction: what was written in it, and how its producer believes that it ended."""

    def __init__(self, name: str, number: int) -> None:
        self.name = f"{name}.{number}"
        self.number = number
        self.values: list[bytes] = []
        self.has_offset = False
        self.truth = Truth.OPEN


class Transactor:
    """One producer with a transactional id, which consumes from nowhere and produces to LEDGER."""

    def __init__(
        self, world: BrokerWorld, chance: random.Random, name: str, *, is_v2: bool
    ) -> None:
        self.name = name
        self.tales: list[Tale] = []
        self.is_stopped = False
        self._world = world
        self._chance = chance
        self._is_v2 = is_v2
        self._producer = Producer(-1, -1)
        self._sequences: dict[int, int] = {}
        self._zombie: Producer | None = None
        self._asked = 0
        self._life = self._live()

    def begin(self) -> None:
        """Begin to live."""
        self._world.schedule(1, partial(self._go_on, None))

    def _go_on(self, answer: object) -> None:
        if self.is_stopped:
            return
        step = self._life.send(answer)
        self._asked += 1
        asked = self._asked

        def resume(found: object) -> None:
            if asked == self._asked:
                self._asked += 1
                self._world.schedule(1, partial(self._go_on, found))

        self._world.schedule(_ANSWER_MS_MAX, partial(resume, None))
        step(resume)

    # ── what it does ─────────────────────────────────────────────────────────────────────────

    def _live(self) -> Life:
        while True:
            yield self._pause(50)
            found = yield self._init()
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
        """Do one transaction; return whether the producer may go on with the next."""
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
            yield self._pause(2 * _TIMEOUT_MS)  # it is aborted meanwhile
        return (yield from self._end(tale, is_commit=self._chance.random() < 0.8))

    def _write(self, tale: Tale, index: int) -> Life:
        value = f"{tale.name}.{len(tale.values)}".encode()
        tale.values.append(value)
        for _ in range(_TRIES_MAX):
            if not self._is_v2 and not isinstance((yield self._add(LEDGER, index)), Added):
                continue
            outcome = yield self._send(index, self._producer, self._sequences.get(index, 0), value)
            if outcome is Outcome.COMMITTED:
                self._sequences[index] = self._sequences.get(index, 0) + 1
                return True
            yield self._pause(30)
        self._world.count("transactional writes given up")
        return False

    def _commit_offset(self, tale: Tale) -> Life:
        for _ in range(_TRIES_MAX):
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
        tale.has_offset = True  # it may have been kept aside all the same
        return False

    def _end(self, tale: Tale, *, is_commit: bool) -> Life:
        tries = _TRIES_MAX if self._chance.random() < 0.8 else 1
        for _ in range(tries):
            before, tale.truth = tale.truth, Truth.UNKNOWN
            answer = yield self._decide(partial(self._end_command, is_commit, self._producer))
            if isinstance(answer, Ended):
                tale.truth = Truth.COMMITTED if is_commit else Truth.ABORTED
                self._world.count("transactions committed" if is_commit else "transactions aborted")
                self._take(answer.producer)
                return True
            if isinstance(answer, TransactionError):
                if before is Truth.OPEN:
                    tale.truth = Truth.ABORTED  # by the coordinator, after the time-out
                return False
            yield self._pause(50)
        self._world.count("transactions of unknown end")
        return False

    def _rise(self) -> Life:
        """Go on as the producer that was replaced; nothing may come of it."""
        assert self._zombie is not None
        index = self._chance.randrange(PARTITIONS)
        sequence = self._sequences.get(index, 0)
        sent = yield self._send(index, self._zombie, sequence, ZOMBIE)
        ended = yield self._decide(partial(self._end_command, True, self._zombie))  # noqa: FBT003
        if isinstance(ended, Ended):
            raise Violation(f"{self.name}: a fenced producer has ended a transaction")
        if isinstance(sent, KafkaesqueError) and isinstance(ended, TransactionError):
            self._world.count("zombies refused")

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def _pause(self, longest: int) -> Step:
        pause = 1 + self._chance.randrange(longest)

        def wait(resume: Resume) -> None:
            # Longer than any answer is waited for: the driver's own time-out may end it early.
            self._world.schedule(pause, partial(resume, None))

        return wait

    def _init(self) -> Step:
        def ask(to: ReplyTo) -> Decide:
            def decide(machine: Transactions, now: Now, fresh_id: int) -> Decision:
                command = Init(
                    transactional_id=self.name, timeout_ms=_TIMEOUT_MS, fresh_id=fresh_id
                )
                return machine.init(command, to, now)

            return decide

        return self._decide(ask)

    def _end_command(self, is_commit: bool, producer: Producer, to: ReplyTo) -> Decide:  # noqa: FBT001
        def decide(machine: Transactions, now: Now, fresh_id: int) -> Decision:
            command = End(
                transactional_id=self.name,
                producer=producer,
                is_commit=is_commit,
                bumps_epoch=self._is_v2,
                fresh_id=fresh_id,
            )
            return machine.end(command, to, now)

        return decide

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
            coordinator.ask(
                self.name, lambda machine, now, _: machine.add(add, resume, now), resume
            )

        return lambda resume: self._at(self._coordinator(), partial(ask, resume), resume)

    def _decide(self, question: Callable[[ReplyTo], Decide]) -> Step:
        def ask(resume: Resume, broker: Broker) -> None:
            coordinator = broker.transactions.coordinators.of(self.name)
            coordinator.ask(self.name, question(resume), resume)

        return lambda resume: self._at(self._coordinator(), partial(ask, resume), resume)

    def _send(self, index: int, producer: Producer, sequence: int, value: bytes) -> Step:
        now_ms = self._world.clock.now_ms()
        record = Record(offset=0, timestamp_ms=now_ms, key=None, value=value)
        stamp = ProducerStamp(
            producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=sequence
        )
        batch = build_batch([record], producer=stamp, traits=BatchTraits(is_transactional=True))

        def ask(resume: Resume, broker: Broker) -> None:
            def then(found: Appended | KafkaesqueError) -> None:
                if isinstance(found, KafkaesqueError):
                    resume(found)

            topic = broker.topics.topic(LEDGER)
            writing = Writing(
                transactional_id=self.name,
                place=(topic.topic_id, index),
                partition=broker.partition(LEDGER, index),
                batches=memoryview(batch),
                adds=self._is_v2,
                done=resume,
                then=then,
            )
            broker.transactions.append(writing)

        def start(resume: Resume) -> None:
            self._at(self._leader(index), partial(ask, resume), resume)

        return start

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
                    coordinator.ask(
                        lambda groups, now: groups.commit_in_transaction(command, resume, now),
                        resume,
                    )

            check = Check(
                transactional_id=self.name,
                producer=producer,
                place=(topic.topic_id, partition_of(self.name, topic.partitions)),
                adds=self._is_v2,
            )
            broker.transactions.desk.check(check, checked)

        def start(resume: Resume) -> None:
            self._at(self._coordinator(OFFSETS_TOPIC), partial(ask, resume), resume)

        return start

    def fetch(self, found: Callable[[int], None]) -> None:
        """Ask where the group is that goes on with each transaction."""

        def reply(answer: object) -> None:
            if isinstance(answer, Fetched):
                kept = answer.offsets.get((b"\xff" * 16, 0))
                found(0 if kept is None else kept.offset)

        def ask(broker: Broker) -> None:
            coordinator = broker.coordinators.of(self.name)
            coordinator.ask(lambda groups, _: groups.fetch(self.name, reply), reply)

        self._at(self._coordinator(OFFSETS_TOPIC), ask, lambda _: None)

    def _at(
        self, machine: BrokerNode | None, ask: Callable[[Broker], None], resume: Resume
    ) -> None:
        if machine is None or machine not in self._world.able():
            resume(None)
            return
        try:
            self._world.ask_broker(machine, ask)
        except KafkaesqueError as error:
            resume(error)

    def _any(self) -> BrokerNode | None:
        able = self._world.able()
        return self._chance.choice(able) if able else None

    def _topic(self, name: str) -> Topic | None:
        machine = self._any()
        if machine is None or machine.broker is None:
            return None
        return machine.broker.catalog.topics.get(name)

    def _leader(self, index: int) -> BrokerNode | None:
        machine = self._any()
        if machine is None or machine.broker is None:
            return None
        topic = machine.broker.catalog.topics.get(LEDGER)
        node = None if topic is None else machine.broker.partition_leader(topic, index).node
        return None if node is None else self._world.nodes[node]

    def _coordinator(self, topic_name: str = STATE_TOPIC) -> BrokerNode | None:
        """Find who coordinates the id, or the group of its name; the topic comes to be by it."""
        machine = self._any()
        if machine is None or machine.broker is None:
            return None
        node = machine.broker.coordinator_of(self.name, topic_name)
        if node is not None:
            return self._world.nodes[node]

        def make(broker: Broker) -> None:
            if topic_name == STATE_TOPIC:
                broker.transactions.coordinators.when_ready(lambda _: None)
            else:
                broker.coordinators.when_ready(lambda _: None)

        self._world.ask_broker(machine, make)
        return None

    def _group_index(self) -> int | None:
        self._coordinator(OFFSETS_TOPIC)  # so that the topic comes to be
        topic = self._topic(OFFSETS_TOPIC)
        return None if topic is None else partition_of(self.name, topic.partitions)
