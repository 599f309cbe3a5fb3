"""How much of the disk's own speed is left when every message must be synced first?

16 connections send prebuilt requests with acks=all to a topic with flush.policy=always, each its
next one after the last response. Requests of 1 MB are compared with one program that repeatedly
writes 1 MB and syncs it; requests of 16 KB with one sync per append of 16 KB, which is what they
would cost if syncs were not shared. Both sides take turns; the best round of each counts. Prints
two JSON lines.
"""

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import cast

import uvloop

from bench.serving import Served, a_batch, produce_frame, serving
from kafkaesque.testing.process import HOST

ROUNDS = 5
SECONDS_PER_ROUND = 1.5
CONNECTIONS = 16
SIZES = {"sync-1m": 1_000_000, "sync-16k": 16_000}
SETTINGS = {"flush.policy": "always", "max.message.bytes": "2000000"}
MIB = 1 << 20


class Sender(asyncio.BufferedProtocol):
    """Resends the same request after each response, until the time is up."""

    def __init__(self, frame: bytes, deadline: float) -> None:
        self.answers = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._frame = frame
        self._deadline = deadline
        self._buffer = memoryview(bytearray(4096))
        self._got = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=4 * MIB)
        self._transport.write(self._frame)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the response, which is small."""
        return self._buffer[self._got :]

    def buffer_updated(self, nbytes: int) -> None:
        """Count the response and send the next request."""
        self._got += nbytes
        if self._got < 4 or self._got < 4 + int.from_bytes(self._buffer[:4], "big"):
            return
        self._got = 0
        self.answers += 1
        if time.perf_counter() < self._deadline:
            self._transport.write(self._frame)
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()


async def send(broker: Served, frame: bytes) -> float:
    """Return the responses per second over all connections."""
    loop = asyncio.get_running_loop()
    start = time.perf_counter()
    senders = [
        (
            await loop.create_connection(
                lambda: Sender(frame, start + SECONDS_PER_ROUND), HOST, broker.port
            )
        )[1]
        for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*(sender.done for sender in senders))
    return sum(sender.answers for sender in senders) / (time.perf_counter() - start)


def write_and_sync(folder: Path, data: bytes) -> float:
    """Return how many times per second the data can be written and synced."""
    path = folder / "bare"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    start = time.perf_counter()
    count = 0
    while time.perf_counter() < start + SECONDS_PER_ROUND:
        os.write(descriptor, data)
        os.fdatasync(descriptor)
        count += 1
    taken = time.perf_counter() - start
    os.close(descriptor)
    path.unlink()
    return count / taken


def main() -> None:
    """Measure and print."""
    with serving() as broker, tempfile.TemporaryDirectory() as folder:
        for figure, size in SIZES.items():
            batch = a_batch(1, size)
            broker.create_topic(figure, SETTINGS)
            frame = produce_frame(figure, batch)
            bare = ours = 0.0
            for _ in range(ROUNDS):
                bare = max(bare, write_and_sync(Path(folder), batch))
                ours = max(ours, uvloop.run(send(broker, frame)))
            line = {
                "figure": figure,
                "measured": round(ours * len(batch) / MIB, 1),
                "unit": "MB/s",
                "ratio": round(ours / bare, 2),
                "bare": round(bare * len(batch) / MIB, 1),
                "requests_per_s": round(ours),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
