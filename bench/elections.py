"""How long are 1,000 partitions without a leader when the broker that leads them all crashes?

Three whole brokers on simulated disks and links, 50 ms per tick, 1 to 2 ms per message or sync.
Broker 1 leads 1,000 partitions, all at rest, and is killed. It measures the simulated time until
each has a leader that serves: when the others learn that nothing listens there any more, and when
they must notice the silence themselves. It also reports the messages per group, the most that one
broker sends in one tick, and the processor time of each survivor. In the reference every replica
is left to its own random timeout. Prints one JSON line.
"""

import json
import time
from collections.abc import Callable
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.config import BrokerConfig, LogConfig
from kafkaesque.errors import KafkaesqueError
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld, Frame
from kafkaesque.sim.inode import DiskFaults
from kafkaesque.sim.settings import NetworkFaults
from kafkaesque.types import GroupId, NodeId

GROUPS = 1_000
TICK_MS = 50
STEPS_MAX = 20_000_000
SURVIVORS = (2, 3)


class QuietWorld(BrokerWorld):
    """A world without checks after each step, so that only the brokers are measured."""

    def act(self, machine: BrokerNode, action: Callable[[], None]) -> None:
        """Run an action of a node."""
        action()
        if machine.broker is not None:
            machine.broker.flush()


class Meter:
    """Counts what each broker sends in each tick."""

    def __init__(self, world: QuietWorld) -> None:
        self.total = 0
        self._world = world
        self._by_tick: dict[tuple[NodeId, int], int] = {}
        self._send = world.network.send
        world.network.send = self.send  # type: ignore[method-assign]

    def send(self, group: GroupId, message: Frame) -> None:
        """Count a message, and send it."""
        self.total += 1
        key = message.source, self._world.clock.time // TICK_MS
        self._by_tick[key] = self._by_tick.get(key, 0) + 1
        self._send(group, message)

    @property
    def most_in_a_tick(self) -> int:
        """The most that one broker sent in one tick."""
        return max(self._by_tick.values())


def main() -> None:
    """Measure the three ways, print one line."""
    told, noticed, chance = measure("suspect"), measure("notice"), measure("chance")
    line = {
        "figure": "elections",
        "measured": told["ms"],
        "unit": "ms",
        "told": told,
        "noticed": noticed,
        "by chance": chance,
    }
    print(json.dumps(line))


def measure(way: str) -> dict[str, float]:
    """Kill the leader of all partitions, and wait until all are led again."""
    world = at_rest()
    survivors = [broker_of(world, node) for node in SURVIVORS]
    if way == "chance":
        for broker in survivors:
            broker.replicas._roster.on_lost = lambda _: None
    groups = [group for group in survivors[0].replicas.by_group if "/" in group]
    world.nodes[1].kill()
    meter = Meter(world)
    begun, used = world.clock.time, time.process_time()
    if way == "suspect":
        for node in SURVIVORS:
            world.act(world.nodes[node], partial(broker_of(world, node).suspect, 1))

    def are_led() -> bool:
        return all(
            any(broker.replicas.by_group[group].is_serving for broker in survivors)
            for group in reversed(groups)
        )

    assert world.run_until(are_led, STEPS_MAX), "some partitions have no leader"
    return {
        "ms": world.clock.time - begun,
        "messages per group": round(meter.total / GROUPS, 1),
        "messages in a tick": meter.most_in_a_tick,
        "cpu ms per survivor": round(1000 * (time.process_time() - used) / len(SURVIVORS)),
    }


def at_rest() -> QuietWorld:
    """Return a cluster in which broker 1 leads all partitions, and all are at rest."""
    settings = BrokerSettings(
        tick_ms=TICK_MS,
        ask_ms=60_000,
        log=LogConfig(),
        broker=BrokerConfig(),
        disk=DiskFaults(sync_delay_max=1),
        network=NetworkFaults(delay_max=1),
    )
    world = QuietWorld(1, settings)
    assert world.run_until(lambda: len(world.able()) == len(world.nodes), STEPS_MAX)
    answers: list[KafkaesqueError | None] = []
    places = [[1, *(SURVIVORS if index % 2 else SURVIVORS[::-1])] for index in range(GROUPS)]

    def create(broker: Broker) -> None:
        broker.create_topic("orders", -1, {}, answers.append, assignment=places)

    world.ask_broker(world.nodes[1], create)
    assert world.run_until(lambda: bool(answers), STEPS_MAX)
    assert answers == [None], answers

    def rests() -> bool:
        brokers = [broker_of(world, node) for node in world.nodes]
        return all(
            replica.raft.is_resting and (broker.node == 1) == replica.is_serving
            for broker in brokers
            for group, replica in broker.replicas.by_group.items()
            if "/" in group
        )

    assert world.run_until(rests, STEPS_MAX)
    return world


def broker_of(world: BrokerWorld, node: NodeId) -> Broker:
    """Return the broker that runs on a node."""
    broker = world.nodes[node].broker
    assert broker is not None
    return broker


if __name__ == "__main__":
    main()
