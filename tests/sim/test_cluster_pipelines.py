"""A producer with several batches in flight never gets a gap, whichever broker leads."""

import random
from collections import deque
from contextlib import suppress
from functools import partial

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.refusals import FOR_NOW
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import RaftError
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from tests.sim.test_broker_world import broker_of, wait
from tests.sim.test_cluster_acks import a_world

BATCHES = 300
IN_FLIGHT_MAX = 5
AWAY_MS_MAX = 60
"""The longest delay of a batch: some are refused by a transfer that is over for the next one."""


class Pipeline:
    """An idempotent producer: one connection, answers in the order of the requests.

    After a refusal it sends nothing new until all are answered, and then resends from the first
    that was not acknowledged, as librdkafka does. OutOfOrderSequence is unexpected and ends a run.
    """

    def __init__(self, world: BrokerWorld, chance: random.Random) -> None:
        self.left = list(range(BATCHES))
        """The unacknowledged batches, in order."""
        self.refused = 0
        self._world = world
        self._chance = chance
        self._flying: deque[int] = deque()
        self._is_refused = False
        self._node: NodeId | None = None
        self._last_arrival = 0
        world.schedule(1, self._turn)

    def _turn(self) -> None:
        if not self._flying:
            self._is_refused = False
            self._find_leader()
        if self._node is not None and not self._is_refused and len(self._flying) < IN_FLIGHT_MAX:
            sequence = next((one for one in self.left if one not in self._flying), None)
            if sequence is not None:
                self._send(sequence, self._node)
        if self.left:
            self._world.schedule(1 + self._chance.randrange(10), self._turn)

    def _find_leader(self) -> None:
        asked = broker_of(self._world, 1 + self._chance.randrange(3))
        self._node = asked.partition_leader(asked.catalog.topics["orders"], 0).node

    def _send(self, sequence: int, node: NodeId) -> None:
        self._flying.append(sequence)
        now = self._world.clock.time
        arrival = max(self._last_arrival, now + 1 + self._chance.randrange(AWAY_MS_MAX))
        self._last_arrival = arrival
        machine = self._world.nodes[node]
        self._world.schedule(
            arrival - now,
            lambda: self._world.ask_broker(machine, lambda broker: self._arrive(broker, sequence)),
        )

    def _arrive(self, broker: Broker, sequence: int) -> None:
        record = Record(
            offset=0, timestamp_ms=self._world.clock.now_ms(), key=None, value=b"%d" % sequence
        )
        stamp = ProducerStamp(producer_id=7, producer_epoch=0, base_sequence=sequence)
        batch = memoryview(bytearray(build_batch([record], producer=stamp)))

        def done(outcome: Outcome) -> None:
            self._answered(sequence, is_written=outcome is Outcome.COMMITTED)

        try:
            broker.partition("orders", 0).append(batch, done, needs_all=True)
        except FOR_NOW:
            self.refused += 1
            self._answered(sequence, is_written=False)

    def _answered(self, sequence: int, *, is_written: bool) -> None:
        self._flying.remove(sequence)
        if is_written:
            self.left.remove(sequence)
        else:
            self._is_refused = True


def transfer_now_and_then(world: BrokerWorld, pipeline: Pipeline, chance: random.Random) -> None:
    """Rotate leadership; sometimes the target does not receive the request."""

    def turn() -> None:
        world.network.heal()
        leader = world.leading(group_of(broker_of(world, 1).catalog.topics["orders"], 0))
        if leader is not None:
            node = leader.raft.node
            target = chance.choice([one for one in world.nodes if one != node])
            if chance.random() < 0.5:
                world.network.cut(node, target)
            world.act(world.nodes[node], partial(transfer, leader, target))
        if pipeline.left:
            world.schedule(100 + chance.randrange(400), turn)

    def transfer(leader: Replica, target: NodeId) -> None:
        with suppress(RaftError):  # the previous transfer may still be in progress
            leader.transfer(target)

    world.schedule(1, turn)


@pytest.mark.parametrize("seed", range(8))
def test_each_batch_of_a_pipeline_is_written_once_and_in_order(seed: int) -> None:
    world = a_world()
    chance = random.Random(seed)
    pipeline = Pipeline(world, chance)
    transfer_now_and_then(world, pipeline, chance)
    wait(world, lambda: not pipeline.left)
    assert pipeline.refused, "nothing was refused, so nothing was tested"
    group = group_of(broker_of(world, 1).catalog.topics["orders"], 0)
    wait(world, lambda: world.leading(group) is not None)
    leader = world.leading(group)
    assert leader is not None
    data = broker_of(world, leader.raft.node).partition("orders", 0).read(0, 1 << 20)
    values = [record.value for view in split_batches(data) for record in read_records(view)]
    assert values == [b"%d" % sequence for sequence in range(BATCHES)]
