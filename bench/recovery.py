"""How soon does a broker with 10,000 partitions accept records again after it was killed?

1,000 topics of ten partitions each get a record, and the broker is killed. The clock starts before
its new process is created. A producer tries one partition after another until each has acknowledged
a record with acks=all, and starts over while some are not open yet. Prints two JSON lines: the time
to the first acknowledgement, and to the last partition's first, with the broker's processor time,
which other programs on the machine do not stretch.
"""

import argparse
import json
import socket
import tempfile
import time
from pathlib import Path

from bench.serving import (
    PRODUCE_VERSION,
    TOPICS_VERSION,
    a_batch,
    frame_of,
    processor_seconds,
    receive,
)
from kafkaesque.testing.process import HOST, BrokerProcess
from kafkaesque.wire.codec import decode
from kafkaesque.wire.header import decode_response_header, response_header_version
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TOPICS = 1_000
PARTITIONS_PER_TOPIC = 10
TOPICS_PER_REQUEST = 50
RETRY_S = 0.02
ANSWER_S = 600.0


def connect(port: int) -> socket.socket:
    """Return a connection as soon as the port is open."""
    while True:
        try:
            connection = socket.create_connection((HOST, port), timeout=ANSWER_S)
        except ConnectionRefusedError:
            time.sleep(RETRY_S)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def create(connection: socket.socket, names: list[str]) -> None:
    """Create topics."""
    version = TOPICS_VERSION
    for first in range(0, len(names), TOPICS_PER_REQUEST):
        topics = tuple(
            CreatableTopic(
                name=name,
                num_partitions=PARTITIONS_PER_TOPIC,
                replication_factor=1,
                assignments=(),
                configs=(),
            )
            for name in names[first : first + TOPICS_PER_REQUEST]
        )
        request = CreateTopicsRequest(topics=topics, timeout_ms=600_000, validate_only=False)
        connection.sendall(frame_of(request, version))
        data = receive(connection)
        header_version = response_header_version(api_of(CreateTopicsResponse), version)
        _, start = decode_response_header(data, header_version)
        for made in decode(CreateTopicsResponse, version, data, start).topics:
            assert made.error_code == 0, made.error_message


def produce(connection: socket.socket, name: str, indexes: set[int], batch: bytes) -> set[int]:
    """Send a record to each of these partitions; return those that acknowledged it."""
    shares = tuple(PartitionProduceData(index=index, records=batch) for index in sorted(indexes))
    data = TopicProduceData(name=name, partition_data=shares)
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(data,))
    connection.sendall(frame_of(request, PRODUCE_VERSION))
    answer = receive(connection)
    header_version = response_header_version(api_of(ProduceResponse), PRODUCE_VERSION)
    _, start = decode_response_header(answer, header_version)
    (topic,) = decode(ProduceResponse, PRODUCE_VERSION, answer, start).responses
    return {one.index for one in topic.partition_responses if one.error_code == 0}


def fill(port: int, names: list[str], batch: bytes) -> None:
    """Create the topics and write to every partition."""
    everything = set(range(PARTITIONS_PER_TOPIC))
    with connect(port) as connection:
        create(connection, names)
        for name in names:
            assert produce(connection, name, everything, batch) == everything


def first_and_last(port: int, names: list[str], batch: bytes) -> tuple[float, float]:
    """Return when the first partition acknowledged a record, and when the last one did."""
    left = {name: set(range(PARTITIONS_PER_TOPIC)) for name in names}
    first = 0.0
    with connect(port) as connection:
        while left:
            for name in list(left):
                done = produce(connection, name, left[name], batch)
                if done and not first:
                    first = time.perf_counter()
                left[name] -= done
                if not left[name]:
                    del left[name]
            time.sleep(RETRY_S)
    return first, time.perf_counter()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=TOPICS)
    names = [f"topic-{number:05d}" for number in range(parser.parse_args().topics)]
    batch = a_batch(1, 100)
    with tempfile.TemporaryDirectory() as root:
        broker = BrokerProcess(Path(root) / "data")
        broker.start()
        try:
            fill(broker.port, names, batch)
            broker.kill()
            start = time.perf_counter()
            broker.launch()
            first, last = first_and_last(broker.port, names, batch)
            cpu = processor_seconds(broker.pid)
        finally:
            broker.kill()
    line = {"figure": "recovery-first", "measured": round(first - start, 2), "unit": "s"}
    print(json.dumps(line))
    line = {
        "figure": "recovery-last",
        "measured": round(last - start, 2),
        "unit": "s",
        "cpu_s": cpu,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
