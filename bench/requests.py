"""How many requests per second does one connection get through, and what does a task each cost?

The broker runs in a process of its own, on uvloop. A client writes prebuilt requests, many at a
time, and counts the answers: ApiVersions, which only passes through, and Produce with acks=1 of one
batch. The processor time of the broker for each request says more than the rate on a busy machine.
Prints one JSON line for each kind of request.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.wire.codec import encode
from kafkaesque.wire.header import RequestHeader, encode_request_header, request_header_version
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

SECONDS = 3.0
TOPIC = "bench"


def framed(request: object, version: int) -> bytes:
    """Return a request as it is sent."""
    api = api_of(type(request))
    header = RequestHeader(key=api.key, version=version, correlation_id=1, client_id="bench")
    body = encode_request_header(header, request_header_version(api, version))
    body += encode(request, version)
    return struct.pack(">i", len(body)) + body


def a_produce(value_bytes: int, acks: int = 1) -> bytes:
    """Return a Produce request with one batch of one record."""
    record = Record(offset=0, timestamp_ms=1, key=None, value=bytes(value_bytes))
    share = PartitionProduceData(index=0, records=bytes(build_batch([record])))
    topic = TopicProduceData(name=TOPIC, partition_data=(share,))
    return framed(ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(topic,)), 9)


def answer(stream: socket.socket) -> bytes:
    """Read one answer."""
    (size,) = struct.unpack(">i", stream.recv(4, socket.MSG_WAITALL))
    return stream.recv(size, socket.MSG_WAITALL)


def processor_seconds(process: int) -> float:
    """Return what a process has taken of the processor so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(port: int, broker: int, request: bytes, window: int) -> tuple[float, float]:
    """Return requests per second, with `window` of them under way, and the broker's us for each."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(framed(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 9))
        answer(stream)
        stream.sendall(request)
        answer_bytes = 4 + len(answer(stream))
        burst = request * window
        done, start, taken = 0, time.perf_counter(), processor_seconds(broker)
        while time.perf_counter() - start < SECONDS:
            stream.sendall(burst)
            left = answer_bytes * window
            while left:
                left -= len(stream.recv(left))
            done += window
        taken = processor_seconds(broker) - taken
        return done / (time.perf_counter() - start), 1e6 * taken / done


def main() -> None:
    """Start a broker, measure, print."""
    with tempfile.TemporaryDirectory() as folder:
        broker = subprocess.Popen(
            [
                *(sys.executable, "-m", "kafkaesque", "serve", "--port", "0"),
                *("--data", str(Path(folder) / "data")),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert broker.stdout is not None
        port = int(broker.stdout.readline().split()[3].rpartition(":")[2].rstrip(","))
        runs = (
            ("requests-empty", framed(ApiVersionsRequest(), 0), 50),
            ("requests-100b", a_produce(100), 50),
            ("requests-16k", a_produce(16_000), 10),
            ("requests-1m", a_produce(1_000_000), 1),
        )
        for name, request, window in runs:
            measured, taken_us = rate(port, broker.pid, request, window)
            line = {
                "figure": name,
                "measured": round(measured),
                "unit": "requests/s",
                "broker_us": round(taken_us, 1),
                "mb_per_s": round(measured * len(request) / 1e6),
            }
            print(json.dumps(line))
        broker.terminate()
        broker.wait()


if __name__ == "__main__":
    main()
