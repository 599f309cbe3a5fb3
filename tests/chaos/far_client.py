"""A client in one region: `python -m tests.chaos.far_client WORD BOOTSTRAP ...`.

Each word is a command that prints its result as JSON.
"""

# mypy: disable-error-code="no-untyped-call"

import json
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SECONDS_MAX = 60
LARGE_SECONDS_MAX = 100
LARGE_BYTES_MAX = 64 << 20
WARM_UP = 3
_PACE_S = 0.02


def create(bootstrap: str, topic: str, *nodes: str) -> int:
    """Create a topic of one partition on these brokers, the preferred leader first."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    replicas = [[int(node) for node in nodes]]
    config = {"max.message.bytes": str(LARGE_BYTES_MAX)}
    wanted = NewTopic(topic, 1, replica_assignment=replicas, config=config)
    begun = time.perf_counter()
    admin.create_topics([wanted])[topic].result(SECONDS_MAX)
    return _ms(time.perf_counter() - begun)


def leader(bootstrap: str, topic: str) -> int:
    """Print the leader of the topic's partition; -1 if it has none."""
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, SECONDS_MAX)
    return int(found.topics[topic].partitions[0].leader)


def produce(bootstrap: str, topic: str, count: str) -> list[int]:
    """Send records one after the other; print how long each took, without the first few."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0}
    )
    took = []
    for number in range(WARM_UP + int(count)):
        begun = time.perf_counter()
        producer.produce(topic, b"%d" % number, partition=0, on_delivery=_expect_no_error)
        assert producer.flush(SECONDS_MAX) == 0
        took.append(_ms(time.perf_counter() - begun))
    return took[WARM_UP:]


def large(bootstrap: str, topic: str, size: str) -> int:
    """Send one record of this many bytes; print how long it took."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "message.max.bytes": LARGE_BYTES_MAX,
        }
    )
    begun = time.perf_counter()
    producer.produce(topic, bytes(int(size)), partition=0, on_delivery=_expect_no_error)
    assert producer.flush(LARGE_SECONDS_MAX) == 0
    return _ms(time.perf_counter() - begun)


def _expect_no_error(error: object, _: object) -> None:
    assert error is None, error


def press(bootstrap: str, topic: str, seconds: str) -> Mapping[str, int]:
    """Send until stopped; print the number of acknowledged records and the longest wait."""
    waits: list[float] = []
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    ends = time.perf_counter() + float(seconds)
    while (begun := time.perf_counter()) < ends:

        def told(error: object, _: object, begun: float = begun) -> None:
            waits.append(time.perf_counter() - begun)
            if error is not None:
                failures.append(error)

        producer.produce(topic, b"x", partition=0, on_delivery=told)
        producer.poll(_PACE_S)
    assert producer.flush(SECONDS_MAX) == 0
    return {"sent": len(waits), "failed": len(failures), "ms": round(max(waits) * 1000)}


def metric(bootstrap: str, wanted: str) -> list[int]:
    """Print each broker's value of a metric, with its labels."""
    found = []
    for address in bootstrap.split(","):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=SECONDS_MAX) as answer:
            lines = answer.read().decode().splitlines()
        counts = [line.split()[-1] for line in lines if line.rpartition(" ")[0] == wanted]
        found.append(int(float(counts[0])) if counts else 0)
    return found


def consume(bootstrap: str, topic: str, rack: str, count: str) -> Mapping[str, object]:
    """Read this many records from the beginning; print how long it took."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "client.rack": rack,
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
        }
    )
    begun = time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(int(count), SECONDS_MAX)
    took = time.perf_counter() - begun
    consumer.close()
    values = [value for one in found if (value := one.value()) is not None]
    return {"ms": _ms(took), "values": [value.decode() for value in values]}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


_WORDS: Mapping[str, Callable[..., object]] = {
    "create": create,
    "leader": leader,
    "produce": produce,
    "consume": consume,
    "press": press,
    "metric": metric,
    "large": large,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_WORDS[sys.argv[1]](*sys.argv[2:])))
