"""Somebody who lives on a simulated cluster: asks brokers, and waits for what they say, or not.

A life is a generator that yields what it asks for and is sent the answer, or None when none came
in time: brokers die under it. It finds leaders and coordinators by asking any broker, as Kafka's
clients do.
"""

import random
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition import Appended
from kafkaesque.broker.transaction_coordinator import Decide
from kafkaesque.broker.transactions import STATE_TOPIC, Writing
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.group_commands import Now
from kafkaesque.machines.transaction_commands import (
    Decision,
    Init,
    Prepare,
    Producer,
    ReplyTo,
)
from kafkaesque.machines.transactions import Transactions
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld

LEDGER = "ledger"
PARTITIONS = 3
TIMEOUT_MS = 1_500
ANSWER_MS_MAX = 700
TRIES_MAX = 4

Resume: TypeAlias = Callable[[object], None]
Step: TypeAlias = Callable[[Resume], None]
Life: TypeAlias = Generator[Step, Any, Any]


class Living:
    """One life; what it does is up to those who derive from it."""

    def __init__(self, world: BrokerWorld, chance: random.Random, name: str) -> None:
        self.name = name
        self.is_stopped = False
        self._world = world
        self._chance = chance
        self._asked = 0
        self._life = self._live()

    def begin(self) -> None:
        """Begin to live."""
        self._world.schedule(1, partial(self._go_on, None))

    def _live(self) -> Life:
        raise NotImplementedError

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

        self._world.schedule(ANSWER_MS_MAX, partial(resume, None))
        step(resume)

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def _pause(self, longest: int) -> Step:
        pause = 1 + self._chance.randrange(longest)

        def wait(resume: Resume) -> None:
            # Longer than any answer is waited for: the driver's own time-out may end it early.
            self._world.schedule(pause, partial(resume, None))

        return wait

    def _init(self, name: str) -> Step:
        def ask(to: ReplyTo) -> Decide:
            def decide(machine: Transactions, now: Now, fresh_id: int) -> Decision:
                command = Init(transactional_id=name, timeout_ms=TIMEOUT_MS, fresh_id=fresh_id)
                return machine.init(command, to, now)

            return decide

        return self._decide(name, ask)

    def _prepare(self, name: str, producer: Producer) -> Step:
        command = Prepare(transactional_id=name, producer=producer, owner=self.name)
        return self._decide(
            name, lambda to: lambda machine, now, _: machine.prepare(command, to, now)
        )

    def _decide(self, name: str, question: Callable[[ReplyTo], Decide]) -> Step:
        def ask(resume: Resume, broker: Broker) -> None:
            coordinator = broker.transactions.coordinators.of(name)
            coordinator.ask(name, question(resume), resume)

        return lambda resume: self._at(self._coordinator(name), partial(ask, resume), resume)

    def _send(
        self, name: str, index: int, producer: Producer, sequence: int, value: bytes, *, adds: bool
    ) -> Step:
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
                transactional_id=name,
                place=(topic.topic_id, index),
                partition=broker.partition(LEDGER, index),
                batches=memoryview(batch),
                adds=adds,
                done=resume,
                then=then,
            )
            broker.transactions.append(writing)

        def start(resume: Resume) -> None:
            self._at(self._leader(index), partial(ask, resume), resume)

        return start

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

    def _leader(self, index: int) -> BrokerNode | None:
        machine = self._any()
        if machine is None or machine.broker is None:
            return None
        topic = machine.broker.catalog.topics.get(LEDGER)
        node = None if topic is None else machine.broker.partition_leader(topic, index).node
        return None if node is None else self._world.nodes[node]

    def _coordinator(self, name: str, topic_name: str = STATE_TOPIC) -> BrokerNode | None:
        """Find who coordinates an id, or the group of this name; the topic comes to be by it."""
        machine = self._any()
        if machine is None or machine.broker is None:
            return None
        node = machine.broker.coordinator_of(name, topic_name)
        if node is not None:
            return self._world.nodes[node]

        def make(broker: Broker) -> None:
            if topic_name == STATE_TOPIC:
                broker.transactions.coordinators.when_ready(lambda _: None)
            else:
                broker.coordinators.when_ready(lambda _: None)

        self._world.ask_broker(machine, make)
        return None
