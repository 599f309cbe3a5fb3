"""How long does a broker take to the first acknowledged message, and how much memory?

The clock starts before the process is created and stops when a message with acks=all is
acknowledged, on an empty folder, including the topic's creation. The best of several rounds counts.
As in an installed package, Python finds its modules compiled: the first round compiles them, even
if the environment forbids keeping them (`PYTHONDONTWRITEBYTECODE`, which doubles the time). Memory
is that of the process a while later, when it is idle. Prints two JSON lines.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bench.serving import a_batch, produce_frame, receive, serving

ROUNDS = 7
IDLE_SECONDS = 1.0
TOPIC = "first"
MIB = 1 << 20


@contextmanager
def compiling() -> Iterator[Mapping[str, str]]:
    """Yield an environment in which Python keeps compiled modules, in its own folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}


def main() -> None:
    """Measure and print."""
    frame = produce_frame(TOPIC, a_batch(1, 100))
    seconds, resident = float("inf"), 0
    with compiling() as environment:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            with serving(environment=environment) as broker:
                broker.create_topic(TOPIC, {})
                with broker.connect() as connection:
                    connection.sendall(frame)
                    receive(connection)
                    seconds = min(seconds, time.perf_counter() - start)
                    time.sleep(IDLE_SECONDS)
                    resident = max(resident, broker.resident_bytes())
    print(json.dumps({"figure": "start", "measured": round(seconds, 3), "unit": "s"}))
    idle = {"figure": "idle-memory", "measured": round(resident / MIB, 1), "unit": "MB"}
    print(json.dumps(idle))


if __name__ == "__main__":
    main()
