"""How long from starting a broker to the first acknowledged message, and what memory does it hold?

The clock runs from before the process is made until a message that asked for acks=all is
acknowledged, on an empty folder, the topic's creation in it. The best of several rounds counts.
As in an installed package, Python finds its modules compiled: the first round compiles them, also
where the environment forbids to keep what is compiled (`PYTHONDONTWRITEBYTECODE`, which doubles the
time). Memory is what the process holds a while after that, when nothing happens any more. Prints
two JSON lines.
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
    """Give an environment in which Python keeps compiled modules, in a folder of its own."""
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
