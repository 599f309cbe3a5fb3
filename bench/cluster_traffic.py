"""How fast are three brokers that replicate everything, compared with a single broker?

100-byte messages in batches of 1 MB, acks=all, replication factor 3, three partitions, one led by
each broker; the same prebuilt requests go to one broker with one replica. All brokers and the
sender share one machine, so three brokers do three times the work on its processors. They take
turns; the best of several rounds counts. In a virtual machine, whose host provides memory on first
touch, fresh pages of the page cache cost more than anything else, and three brokers need three
times as many: so as much memory is touched beforehand as will be written
(`bench/field/touching.py`), and each topic is deleted after its round. It also measures what
librdkafka sends to one partition: that is what a user sees.
"""

import json
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.field.touching import ASIDE_BYTES, touch
from bench.serving import Served, a_batch, check_produced, produce_frame, receive
from bench.traffic import produce
from kafkaesque.testing.process import BrokerProcess

ROUNDS = 6
PARTITIONS = 3
BROKERS = 3
VALUE_BYTES = 100
RECORDS_PER_BATCH = 9_200
BATCHES = 150
"""Per partition and round: 4 million messages in total."""
IN_FLIGHT = 5
SECONDS_MAX = 60.0
BATCH_BYTES = 1_000_000
DELETE_S = 1.0


def main() -> None:
    """Measure and print."""
    found: dict[str, list[float]] = {}
    client: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as root,
        brokers(Path(root) / "one", 1) as one,
        brokers(Path(root) / "three", BROKERS) as three,
    ):
        cases = (
            ("one-os", one, 1, "os"),
            ("three-os", three, BROKERS, "os"),
            ("three-always", three, BROKERS, "always"),
        )
        for number in range(ROUNDS):
            for name, cluster, replicas, policy in cases:
                topic = f"{name}-{number}"
                rate = measure(cluster, topic, replicas, {"flush.policy": policy}, Path(root))
                found.setdefault(name, []).append(rate)
                create(cluster, f"client-{topic}", 1, replicas, {"flush.policy": policy})
                cost = produce(served(cluster[0]), f"client-{topic}", BATCH_BYTES)
                client.setdefault(name, []).append(1e6 / cost.seconds)
                delete(cluster, topic, f"client-{topic}")
    for figure, rates, ours, bare in (
        ("cluster-os", found, "three-os", "one-os"),
        ("cluster-always", found, "three-always", "three-os"),
        ("cluster-os-librdkafka", client, "three-os", "one-os"),
    ):
        best = {name: max(rates[name]) for name in (ours, bare)}
        line = {
            "figure": figure,
            "measured": round(best[ours] / 1e6, 2),
            "unit": "million msg/s",
            "ratio": round(best[ours] / best[bare], 2),
            "bare": round(best[bare] / 1e6, 2),
        }
        print(json.dumps(line), flush=True)


def served(broker: BrokerProcess) -> Served:
    """Return the address of a broker."""
    return Served(pid=broker.pid, port=broker.port)


@contextmanager
def brokers(root: Path, count: int) -> Iterator[Sequence[BrokerProcess]]:
    """Run a cluster of this many brokers until the caller is done."""
    running: list[BrokerProcess] = []
    try:
        for number in range(count):
            flags = ["--join", running[0].bootstrap] if running else []
            running.append(BrokerProcess(root / f"broker-{number}", flags))
            running[-1].start()
        yield running
    finally:
        for broker in running:
            broker.stop()


def create(
    cluster: Sequence[BrokerProcess],
    topic: str,
    partitions: int,
    replicas: int,
    settings: Mapping[str, str],
) -> dict[int, BrokerProcess]:
    """Create a topic; return the leader of each partition, once all have one."""
    admin = AdminClient({"bootstrap.servers": cluster[0].bootstrap})
    made = admin.create_topics([NewTopic(topic, partitions, replicas, config=dict(settings))])
    made[topic].result(SECONDS_MAX)
    by_node = {broker.node: broker for broker in cluster}
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        known = admin.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions
        leaders = {index: one.leader for index, one in known.items()}
        if len(leaders) == partitions and all(node in by_node for node in leaders.values()):
            return {index: by_node[node] for index, node in leaders.items()}
        time.sleep(0.05)
    raise AssertionError("every partition of a new topic gets a leader")


def delete(cluster: Sequence[BrokerProcess], *topics: str) -> None:
    """Delete topics; their files are removed a moment later."""
    admin = AdminClient({"bootstrap.servers": cluster[0].bootstrap})
    for done in admin.delete_topics(list(topics)).values():
        done.result(SECONDS_MAX)
    time.sleep(DELETE_S)


def measure(
    cluster: Sequence[BrokerProcess],
    topic: str,
    replicas: int,
    settings: Mapping[str, str],
    folder: Path,
) -> float:
    """Return how many messages per second were acknowledged; the data is in `folder`."""
    leaders = create(cluster, topic, PARTITIONS, replicas, settings)
    batch = a_batch(RECORDS_PER_BATCH, VALUE_BYTES)
    senders = [
        threading.Thread(
            target=send, args=(leader, produce_frame(topic, batch, partition=partition))
        )
        for partition, leader in leaders.items()
    ]
    touch(folder, replicas * PARTITIONS * BATCHES * len(batch) + ASIDE_BYTES)
    start = time.perf_counter()
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    return PARTITIONS * BATCHES * RECORDS_PER_BATCH / (time.perf_counter() - start)


def send(leader: BrokerProcess, frame: bytes) -> None:
    """Send prebuilt requests, a few of them in flight."""
    with served(leader).connect() as connection:
        for number in range(BATCHES + IN_FLIGHT):
            if number < BATCHES:
                connection.sendall(frame)
            if number >= IN_FLIGHT:
                check_produced(receive(connection))


if __name__ == "__main__":
    main()
