"""A simulated client that sends requests to brokers and waits for answers, with a timeout.

A life is a generator that yields requests and is sent the answers, or None when none came in time:
brokers die under it. It finds leaders and coordinators by asking any broker, as Kafka's clients do.
"""

import random
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.coordination.transactions import STATE_TOPIC, Writing
from kafkaesque.broker.partition.partition import Appended
from kafkaesque.callbacks import ignore
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import (
    Init,
    OfSink,
    OfTransaction,
    Prepare,
    Producer,
)
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.transactional_ids import query_key

LEDGER = "ledger"
PARTITIONS = 3
TIMEOUT_MS = 1_500
ANSWER_MS_MAX = 700
TRIES_MAX = 4

Resume: TypeAlias = Callable[[object], None]
Step: TypeAlias = Callable[[Resume], None]
Life: TypeAlias = Generator[Step, Any, Any]


class Living:
    """One life; subclasses define what it does."""

    def __init__(self, world: BrokerWorld, chance: random.Random, name: str) -> None:
        self.name = name
        self.is_stopped = False
        self._world = world
        self._chance = chance
        self._asked = 0
        self._life = self._live()

    def begin(self) -> None:
        """Start the life."""
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
            # Longer than the wait for any answer: the driver's own timeout may end it early.
            self._world.schedule(pause, partial(resume, None))

        return wait

    def _init(self, name: str) -> Step:
        return self._ask(Init(transactional_id=name, timeout_ms=TIMEOUT_MS))

    def _prepare(self, name: str, producer: Producer) -> Step:
        return self._ask(Prepare(transactional_id=name, producer=producer, owner=self.name))

    def _ask(self, command: OfTransaction[object] | OfSink[object]) -> Step:
        key = query_key(command.query) if isinstance(command, OfSink) else command.transactional_id

        def ask(resume: Resume, broker: Broker) -> None:
            broker.transactions.coordinators.of(key).ask(command, resume)

        return lambda resume: self._at(self._coordinator(key), partial(ask, resume), resume)

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
        """Find the coordinator of an id, or of the group of this name; this creates the topic."""
        machine = self._any()
        if machine is None or machine.broker is None:
            return None
        node = machine.broker.coordinator_of(name, topic_name)
        if node is not None:
            return self._world.nodes[node]

        def make(broker: Broker) -> None:
            if topic_name == STATE_TOPIC:
                broker.transactions.coordinators.when_ready(ignore)
            else:
                broker.coordinators.when_ready(ignore)

        self._world.ask_broker(machine, make)
        return None
