"""How much does one link between two brokers carry, and what does a message cost each side?

Two processes on loopback, on uvloop. One sends appends of 1 MB, or of 100 bytes for a thousand
groups in turn, with a window of them in flight; the other accepts each like a follower, but writes
nothing. The processor time of both sides is given per message. Prints one JSON line for each size.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable

from bench.serving import processor_seconds
from kafkaesque.entry import Entry
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.handshake import Identity
from kafkaesque.net.links import Links, Peer
from kafkaesque.net.ports import LinkPorts
from kafkaesque.node import run
from kafkaesque.raft.messages import AppendAccepted, AppendRequest, Message

SECONDS = 3.0
GROUPS = 1_000
RUNS = (("links-1m", 1_000_000, 16), ("links-100b", 100, 2_000))


def links(node: int, deliver: Callable[[str, Message], None]) -> Links:
    """Return the links of one of the two processes."""
    identity = Identity(cluster="bench", node=node, directory=bytes(16), session=1, secret=b"bench")
    ports = LinkPorts(deliver=deliver, receive=lambda _: None)
    return Links(identity, ports, LinkConfig(), random.Random(node))


async def follow() -> None:
    """Accept every append, until the other side is gone."""
    gone = asyncio.Event()

    def deliver(group: str, message: Message) -> None:
        assert isinstance(message, AppendRequest)
        end = message.entries[-1].end
        answer = AppendAccepted(source=2, target=1, term=1, match=end, commit=0)
        own.send(1, group, answer)

    own = links(2, deliver)
    own.start()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(own.accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop.add_reader(sys.stdin.fileno(), gone.set)
    await gone.wait()
    server.close()
    await own.close()


class Sender:
    """Sends appends of one size, each acknowledgement releasing the next."""

    def __init__(self) -> None:
        self.done = 0
        self.batch = b""
        self.is_running = False
        self.links = links(1, self._deliver)
        self._names = [f"orders-{number}" for number in range(GROUPS)]

    async def measure(self, size: int, window: int, follower: int) -> tuple[float, float, float]:
        """Return messages per second, and the microseconds of each side per message."""
        self.batch = bytes(size)
        self.done = 0
        self.is_running = True
        start = time.perf_counter()
        taken = [processor_seconds(process) for process in (os.getpid(), follower)]
        for number in range(window):
            self._send(self._names[number % GROUPS])
        await asyncio.sleep(SECONDS)
        self.is_running = False
        done, elapsed = self.done, time.perf_counter() - start
        after = [processor_seconds(process) for process in (os.getpid(), follower)]
        us = [1e6 * (b - a) / done for a, b in zip(taken, after, strict=True)]
        await asyncio.sleep(0.2)
        return done / elapsed, us[0], us[1]

    def _deliver(self, group: str, message: Message) -> None:
        self.done += 1
        if self.is_running:
            self._send(group)

    def _send(self, group: str) -> None:
        entry = Entry(0, 1, 1, self.batch)
        message = AppendRequest(
            source=1, target=2, term=1, prev_end=0, prev_term=1, commit=0, entries=(entry,)
        )
        self.links.send(2, group, message)


async def lead(port: int, follower: int) -> None:
    """Measure and print."""
    sender = Sender()
    sender.links.start([Peer(node=2, host="127.0.0.1", port=port)])
    while not sender.links.nodes:  # noqa: ASYNC110  # ends: the follower listens already
        await asyncio.sleep(0.01)
    for name, size, window in RUNS:
        rate, own_us, follower_us = await sender.measure(size, window, follower)
        line = {
            "figure": name,
            "measured": round(rate),
            "unit": "messages/s",
            "mb_per_s": round(rate * size / 1e6),
            "leader_us": round(own_us, 1),
            "follower_us": round(follower_us, 1),
        }
        print(json.dumps(line))
    await sender.links.close()


def main() -> None:
    """Start the other side, measure, print."""
    if sys.argv[1:] == ["follow"]:
        run(follow())
        return
    follower = subprocess.Popen(
        [sys.executable, "-m", "bench.links", "follow"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdin is not None
    assert follower.stdout is not None
    run(lead(int(follower.stdout.readline()), follower.pid))
    follower.stdin.close()
    follower.wait()


if __name__ == "__main__":
    main()
