"""How long is a partition without leader, and its producer without response, after a SIGKILL?

Three brokers, replication factor 3. An idempotent librdkafka producer with default settings sends
to one partition every few milliseconds. The partition's leader is killed, again and again: the
pause lasts until something sent after the kill is acknowledged. A move is complete when every
partition that the dead broker led has another leader. Each time the broker comes back and
leadership spreads again. In the end nothing may have failed.
"""

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles

from confluent_kafka import Producer

from bench.cluster_traffic import BROKERS, brokers, create
from kafkaesque.testing.leaders import leaders_of
from kafkaesque.testing.process import HOST, BrokerProcess
from kafkaesque.types import NodeId

KILLS = 30
PARTITIONS = (10, 1_000)
NOT_ASKED = ("failover-moved", 10)
SECONDS_MAX = 60.0
SETTLE_S = 7.0
"""Preferred leaders get their leadership back after some seconds."""
_PACE_S = 0.005
_LOOK_EVERY_S = 0.01
TOPIC = "orders"


class Sender:
    """Sends to one partition continuously, and records when messages were acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.failures: list[str] = []
        self._answers: list[tuple[float, float]] = []
        self._is_ended = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer(settings)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def first_answer_since(self, moment: float) -> float:
        """Return how long after `moment` a message sent since then was acknowledged."""
        deadline = time.perf_counter() + SECONDS_MAX
        while time.perf_counter() < deadline:
            for sent, answered in list(self._answers):
                if sent >= moment:
                    return answered - moment
            time.sleep(_LOOK_EVERY_S)
        raise AssertionError("producing goes on after a kill")

    def forget(self) -> None:
        """Forget the acknowledgements so far."""
        self._answers.clear()

    def end(self) -> None:
        """Stop sending; all messages must have been acknowledged."""
        self._is_ended.set()
        self._thread.join()
        assert self._producer.flush(SECONDS_MAX) == 0
        assert self.failures == [], self.failures[:3]

    def _run(self) -> None:
        while not self._is_ended.wait(_PACE_S):
            sent = time.perf_counter()

            def told(error: object, _: object, sent: float = sent) -> None:
                if error is None:
                    self._answers.append((sent, time.perf_counter()))
                else:
                    self.failures.append(str(error))

            self._producer.produce(TOPIC, b"x", partition=0, on_delivery=told)
            self._producer.poll(0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--partitions", type=int, nargs="*", default=PARTITIONS)
    options = parser.parse_args()
    for partitions in options.partitions:
        with tempfile.TemporaryDirectory() as root, brokers(Path(root), BROKERS) as running:
            pauses, moves = measure(list(running), partitions, options.kills)
        for figure, values in (("failover-pause", pauses), ("failover-moved", moves)):
            kind = "raw" if (figure, partitions) == NOT_ASKED else "figure"
            line = {
                kind: f"{figure}-{partitions}",
                "measured": round(median(values), 3),
                "unit": "s",
                "p99": round(quantiles(values, n=100)[-1], 3),
                "worst": round(max(values), 3),
                "kills": len(values),
            }
            print(json.dumps(line), flush=True)


def measure(
    running: list[BrokerProcess], partitions: int, kills: int
) -> tuple[list[float], list[float]]:
    """Return the producer's pauses, and how long it took until all partitions were led again."""
    create(running, TOPIC, partitions, BROKERS, {})
    by_node = {broker.node: broker for broker in running}
    sender = Sender(",".join(broker.bootstrap for broker in running))
    pauses, moves = [], []
    time.sleep(SETTLE_S)
    for _ in range(kills):
        leaders = _all_led(running[0], partitions)
        dead = by_node[leaders[0]]
        led = {index for index, node in leaders.items() if node == dead.node}
        witness = next(broker for broker in running if broker is not dead)
        sender.forget()
        killed_at = time.perf_counter()
        dead.kill()
        moves.append(_moved(witness, dead, led) - killed_at)
        pauses.append(sender.first_answer_since(killed_at))
        dead.start()
        time.sleep(SETTLE_S)
    sender.end()
    return pauses, moves


def _all_led(witness: BrokerProcess, partitions: int) -> dict[int, NodeId]:
    """Return the leader of each partition, once all have one."""
    deadline = time.perf_counter() + SECONDS_MAX
    while time.perf_counter() < deadline:
        found = leaders_of(HOST, witness.port, TOPIC)
        led = {index: node for index, node in found.items() if node is not None}
        if len(led) == partitions:
            return led
        time.sleep(_LOOK_EVERY_S)
    raise AssertionError("every partition has a leader")


def _moved(witness: BrokerProcess, dead: BrokerProcess, led: set[int]) -> float:
    """Return when each of these partitions has another leader."""
    deadline = time.perf_counter() + SECONDS_MAX
    while time.perf_counter() < deadline:
        now = leaders_of(HOST, witness.port, TOPIC)
        if now and all(now.get(index) not in (None, dead.node) for index in led):
            return time.perf_counter()
        time.sleep(_LOOK_EVERY_S)
    raise AssertionError("every partition gets another leader")


if __name__ == "__main__":
    main()
