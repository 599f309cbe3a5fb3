"""The brokers of the demonstration: three processes, one of which is killed and restarted."""

import time
from pathlib import Path

from kafkaesque.cli.demo_traffic import DemoFailed
from kafkaesque.testing.leaders import leaders_of
from kafkaesque.testing.process import HOST, BrokerProcess
from kafkaesque.types import NodeId

BROKERS = 3
ELECTION_SECONDS_MAX = 30.0
_LOOK_EVERY_S = 0.02


class DemoCluster:
    """Real brokers on free ports, with their data in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.brokers: dict[NodeId, BrokerProcess] = {}

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start(self) -> dict[NodeId, float]:
        """Start all; return how many milliseconds each took."""
        took_ms = {}
        first: BrokerProcess | None = None
        for number in range(1, BROKERS + 1):
            flags = ["--join", first.bootstrap] if first is not None else []
            broker = BrokerProcess(self.folder / f"broker-{number}", flags)
            began = time.perf_counter()
            try:
                broker.start()
            finally:
                self.brokers[broker.node or number] = broker
            took_ms[broker.node] = (time.perf_counter() - began) * 1000
            first = first or broker
        return took_ms

    def stop(self) -> None:
        """Stop all that run."""
        for broker in self.brokers.values():
            broker.kill()

    def leaders(self, topic: str) -> dict[int, NodeId | None]:
        """Return the leader of each partition, as seen by the first broker that answers."""
        for broker in self.brokers.values():
            if broker.is_running:
                found = leaders_of(HOST, broker.port, topic)
                if found:
                    return found
        return {}

    def wait_for_leaders(self, topic: str, partitions: int) -> dict[int, NodeId]:
        """Return the leader of each partition, once all have one."""
        deadline = time.monotonic() + ELECTION_SECONDS_MAX
        while time.monotonic() < deadline:
            found = self.leaders(topic)
            known = {index: node for index, node in found.items() if node is not None}
            if len(known) == partitions:
                return known
            time.sleep(_LOOK_EVERY_S)
        raise DemoFailed(f"not every partition of {topic} got a leader")

    def elections_ms(self, topic: str, dead: NodeId, led: set[int]) -> dict[int, float]:
        """Return how long each partition that a dead broker led had no leader."""
        began = time.perf_counter()
        took_ms: dict[int, float] = {}
        while len(took_ms) < len(led):
            for index, node in self.leaders(topic).items():
                if index in led and node not in (None, dead) and index not in took_ms:
                    took_ms[index] = (time.perf_counter() - began) * 1000
            if time.perf_counter() - began > ELECTION_SECONDS_MAX:
                raise DemoFailed(f"not every partition of {topic} got a new leader")
            time.sleep(_LOOK_EVERY_S)
        return took_ms
