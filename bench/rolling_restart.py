"""What does a producer notice when all brokers are restarted, one after another?

Three brokers, replication factor 3. An idempotent librdkafka producer with default settings sends
to all partitions continuously, while every broker is stopped and started again; with --kill it is
killed instead. Nothing may fail, be lost, be duplicated or change its order. The longest pause is
the longest that any record waited for its acknowledgement.
"""

import argparse
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId

BROKERS = 3
PARTITIONS = 12
TOPIC = "orders"
SECONDS_MAX = 60
BETWEEN_S = 1.0
"""How long a broker is back before the next one is restarted."""
_PACE_S = 0.001
_RECORDS_PER_POLL = 10_000


class Load:
    """Sends numbers to all partitions in turn; records what was acknowledged, and how soon."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self.failures: list[str] = []
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        self.longest_s = 0.0
        self._partitions = partitions
        self._sent: dict[int, float] = {}
        self._is_ended = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        """How many records were acknowledged."""
        return sum(len(numbers) for numbers in self.acknowledged.values())

    def take_longest_ms(self) -> int:
        """Return the longest wait of a record since the last call."""
        waiting = min(self._sent.values(), default=time.perf_counter())
        longest = max(self.longest_s, time.perf_counter() - waiting)
        self.longest_s = 0.0
        return round(longest * 1000)

    def end(self) -> None:
        """Stop sending, and wait for all acknowledgements."""
        self._is_ended.set()
        self._thread.join()
        left = self._producer.flush(SECONDS_MAX)
        assert left == 0, f"{left} records were never acknowledged"

    def _run(self) -> None:
        for number in count():
            if self._is_ended.wait(_PACE_S):
                return
            self._sent[number] = time.perf_counter()
            self._producer.produce(
                TOPIC, b"%d" % number, partition=number % self._partitions, on_delivery=self._told
            )
            self._producer.poll(0)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        value, partition = message.value(), message.partition()
        assert value is not None and partition is not None
        number = int(value)
        self.longest_s = max(self.longest_s, time.perf_counter() - self._sent.pop(number))
        if error is None:
            self.acknowledged[partition].append(number)
        else:
            self.failures.append(str(error))


def create(bootstrap: str, partitions: int = PARTITIONS) -> None:
    """Create the topic, with a replica on each broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions, BROKERS)])[TOPIC].result(SECONDS_MAX)


def roll(
    cluster: Cluster, down: Callable[[NodeId], None], load: Load, between_s: float = BETWEEN_S
) -> list[int]:
    """Restart all brokers, one after another; return the longest pause in ms for each."""
    pauses = []
    for node in cluster.nodes:
        load.take_longest_ms()
        down(node)
        cluster.restart(node)
        time.sleep(between_s)
        pauses.append(load.take_longest_ms())
    return pauses


def read(bootstrap: str, wanted: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return the numbers in all partitions, in order, and a few of any surplus."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in wanted])
    found: dict[int, list[int]] = {partition: [] for partition in wanted}
    left = sum(len(numbers) for numbers in wanted.values())
    deadline = time.monotonic() + SECONDS_MAX
    while left > 0 and time.monotonic() < deadline:
        for message in consumer.consume(_RECORDS_PER_POLL, 1.0):
            value, partition = message.value(), message.partition()
            assert value is not None and partition is not None
            found[partition].append(int(value))
            left -= 1
    consumer.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", action="store_true", help="kill brokers instead of stopping them")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    with Cluster(BROKERS) as cluster:
        create(cluster.bootstrap, options.partitions)
        load = Load(cluster.bootstrap, options.partitions)
        time.sleep(BETWEEN_S)
        down = cluster.kill if options.kill else cluster.stop
        pauses = [pause for _ in range(options.rounds) for pause in roll(cluster, down, load)]
        load.end()
        assert read(cluster.bootstrap, load.acknowledged) == load.acknowledged
    kind, name = ("raw", "rolling-kill") if options.kill else ("figure", "rolling-restart")
    line: dict[str, object] = {
        "measured": len(load.failures),
        "unit": "failed sends",
        "sent": load.count,
    }
    print(json.dumps({kind: name, **line}))
    line = {"measured": max(pauses), "unit": "ms", "each": pauses}
    print(json.dumps({"raw": f"{name}-pause", **line}))


if __name__ == "__main__":
    main()
