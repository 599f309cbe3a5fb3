"""A broker in its own process for the benchmarks, its counters, and frames to send to it."""

import os
import socket
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.testing.process import HOST, BrokerProcess
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.header import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    request_header_version,
    response_header_version,
)
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

PRODUCE_VERSION = 9
FETCH_VERSION = 12
TOPICS_VERSION = 7
_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024


def processor_seconds(process: int) -> float:
    """Return the processor time of a process so far, in user and kernel mode."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running broker."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """Return its processor time so far, in user and kernel mode."""
        return processor_seconds(self.pid)

    def resident_bytes(self) -> int:
        """Return its memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * _KIB
        raise AssertionError("every process has a VmRSS")

    def connect(self) -> socket.socket:
        """Return a connection that sends without delay."""
        connection = socket.create_connection((HOST, self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def create_topic(self, name: str, settings: Mapping[str, str]) -> None:
        """Create a topic of one partition."""
        configs = tuple(CreatableTopicConfig(name=n, value=v) for n, v in settings.items())
        topic = CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=(), configs=configs
        )
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False)
        with self.connect() as connection:
            connection.sendall(frame_of(request, TOPICS_VERSION))
            data = receive(connection)
        _, start = decode_response_header(
            data, response_header_version(api_of(CreateTopicsResponse), TOPICS_VERSION)
        )
        (made,) = decode(CreateTopicsResponse, TOPICS_VERSION, data, start).topics
        assert made.error_code == 0, made.error_message


@contextmanager
def serving(
    folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Run a broker with an empty folder, or with the given one, until the caller is done.

    `environment` is added to that of this process.
    """
    with tempfile.TemporaryDirectory() as root:
        broker = BrokerProcess(folder or Path(root) / "data", environment=environment)
        broker.start()
        try:
            yield Served(pid=broker.pid, port=broker.port)
        finally:
            broker.stop()


def frame_of(request: object, version: int) -> bytes:
    """Return a request as sent on the wire, after its length."""
    api = api_of(type(request))
    header = RequestHeader(key=api.key, version=version, correlation_id=7, client_id="bench")
    body = encode_request_header(header, request_header_version(api, version))
    body += encode(request, version)
    return struct.pack(">i", len(body)) + body


def receive(connection: socket.socket) -> bytes:
    """Return the next response, without its length."""
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        data = connection.recv(min(size, 1 << 20))
        assert data, "the broker hung up"
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def a_batch(records: int, value_bytes: int) -> bytes:
    """Return a batch as producers send it."""
    now_ms = time.time_ns() // 1_000_000
    value = os.urandom(value_bytes)
    return bytes(
        build_batch(
            [
                Record(offset=place, timestamp_ms=now_ms, key=None, value=value)
                for place in range(records)
            ]
        )
    )


def produce_frame(topic: str, batch: bytes, acks: int = -1, partition: int = 0) -> bytes:
    """Return a request that appends a batch to a partition, by default with acks=all."""
    share = PartitionProduceData(index=partition, records=batch)
    data = TopicProduceData(name=topic, partition_data=(share,))
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=(data,))
    return frame_of(request, PRODUCE_VERSION)


def check_produced(answer: bytes) -> None:
    """Fail unless a request of `produce_frame` succeeded."""
    header_version = response_header_version(api_of(ProduceResponse), PRODUCE_VERSION)
    _, start = decode_response_header(answer, header_version)
    found = decode(ProduceResponse, PRODUCE_VERSION, answer, start)
    code = found.responses[0].partition_responses[0].error_code
    assert code == 0, f"the batch was refused with error {code}"


def fetch_frame(topic: str, offset: int, *, wait_ms: int, bytes_max: int = 1 << 20) -> bytes:
    """Return a request that reads partition 0 from an offset."""
    share = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        topics=(FetchTopic(topic=topic, partitions=(share,)),),
    )
    return frame_of(request, FETCH_VERSION)
