"""What do 10,000 idle connections cost a broker, how soon does it serve, and how small is it?

The broker is a process of its own; the connections are opened by this one, so that neither runs
out of descriptors. Each has asked one question and been answered. Start is from the launch of the
interpreter to the first acknowledged message, the best of several. Prints one JSON line each.
"""

import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.requests import a_produce, answer, framed
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

CONNECTIONS = 9_900  # below the broker's limit of 10,000
STARTS = 7
TOPIC = "bench"


def start(data: Path) -> tuple["subprocess.Popen[str]", int]:
    """Start a broker; return its process and its port."""
    broker = subprocess.Popen(
        [sys.executable, "-m", "kafkaesque", "serve", "--port", "0", "--data", str(data)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert broker.stdout is not None
    return broker, int(broker.stdout.readline().split()[3].rpartition(":")[2].rstrip(","))


def resident_bytes(process: int) -> int:
    """Return the memory that a process has in use."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def ask(stream: socket.socket, request: bytes) -> None:
    """Send a request and take the answer."""
    stream.sendall(request)
    answer(stream)


def starting(folder: Path) -> tuple[float, float]:
    """Return the seconds to listening and to the first acknowledged message of a new broker."""
    begun = time.perf_counter()
    broker, port = start(folder)
    listening = time.perf_counter() - begun
    with socket.create_connection(("127.0.0.1", port)) as stream:
        ask(stream, framed(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 9))
        ask(stream, a_produce(100, acks=-1))
    served = time.perf_counter() - begun
    broker.terminate()
    broker.wait()
    return listening, served


def main() -> None:
    """Measure and print."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        runs = [starting(Path(folder) / str(number)) for number in range(STARTS)]
        line = {
            "figure": "start",
            "measured": round(min(served for _, served in runs), 3),
            "unit": "s",
            "listening": round(min(listening for listening, _ in runs), 3),
        }
        print(json.dumps(line))
        broker, port = start(Path(folder) / "idle")
        time.sleep(1)
        idle = resident_bytes(broker.pid)
        print(json.dumps({"figure": "idle-rss", "measured": round(idle / 1e6, 1), "unit": "MB"}))
        streams = []
        for _ in range(CONNECTIONS):
            stream = socket.create_connection(("127.0.0.1", port))
            ask(stream, framed(ApiVersionsRequest(), 0))
            streams.append(stream)
        more = resident_bytes(broker.pid) - idle
        line = {
            "figure": "idle-connections",
            "measured": round(more / 1e6 * 10_000 / CONNECTIONS, 1),
            "unit": "MB",
            "bytes_each": round(more / CONNECTIONS),
        }
        print(json.dumps(line))
        for stream in streams:
            stream.close()
        broker.terminate()
        broker.wait()


if __name__ == "__main__":
    main()
