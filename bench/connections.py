"""What do 10,000 idle connections cost a broker?

The broker runs in its own process; this one opens the connections, so that neither runs out of
descriptors. Each connection has sent one request and got its response. Prints one JSON line.
"""

import json
import resource
import time

from bench.serving import frame_of, receive, serving
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest

CONNECTIONS = 9_900  # below the broker's limit of 10,000
IDLE_SECONDS = 1.0


def main() -> None:
    """Measure and print."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    question = frame_of(ApiVersionsRequest(), 0)
    with serving() as broker:
        time.sleep(IDLE_SECONDS)
        idle = broker.resident_bytes()
        streams = []
        for _ in range(CONNECTIONS):
            stream = broker.connect()
            stream.sendall(question)
            receive(stream)
            streams.append(stream)
        more = broker.resident_bytes() - idle
        for stream in streams:
            stream.close()
    line = {
        "figure": "idle-connections",
        "measured": round(more / 1e6 * 10_000 / CONNECTIONS, 1),
        "unit": "MB",
        "bytes_each": round(more / CONNECTIONS),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
