"""How long until a consumer has a message, compared with a bare echo of the same bytes?

1,000 messages per second of 100 bytes each, acks=all, flush.policy=os; a consumer waits in a long
poll on another connection. The reference is a uvloop server that only echoes: the same frames at
the same rate. Both take turns; the best median of each counts. Prints one JSON line.
"""

import asyncio
import json
import multiprocessing
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import uvloop

from bench.serving import Served, a_batch, fetch_frame, produce_frame, serving
from kafkaesque.testing.process import HOST

ROUNDS = 5
MESSAGES = 1_500
PERIOD_SECONDS = 0.001
WARM_UP = 200
TOPIC = "latency"
_HIGH_WATERMARK = struct.Struct(">q")


class Echo(asyncio.Protocol):
    """Echoes everything."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self._transport.write(data)


def echo(listener: socket.socket) -> None:
    """Serve until the process is stopped."""

    async def go() -> None:
        server = await asyncio.get_running_loop().create_server(Echo, sock=listener)
        await server.serve_forever()

    uvloop.run(go())


@contextmanager
def echoing() -> Iterator[int]:
    """Run the echo in its own process; yields its port."""
    with socket.create_server((HOST, 0)) as listener:
        process = multiprocessing.get_context("fork").Process(target=echo, args=(listener,))
        process.start()
        yield int(listener.getsockname()[1])
        process.terminate()
        process.join()


class Frames(asyncio.Protocol):
    """Reports every frame that arrives."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[bytes] = asyncio.Queue()
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection for sending."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Split the input into frames."""
        data = self._rest + data
        while len(data) >= 4:
            end = 4 + int.from_bytes(data[:4], "big")
            if len(data) < end:
                break
            self.came.put_nowait(data[:end])
            data = data[end:]
        self._rest = data


async def paced(line: Frames, frame: bytes, sent: list[float]) -> None:
    """Send at the given rate; record the times."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(MESSAGES):
        delay = start + number * PERIOD_SECONDS - loop.time()
        if delay > 0:
            await asyncio.sleep(delay)
        sent.append(time.perf_counter())
        line.transport.write(frame)


async def time_echo(port: int, frame: bytes) -> float:
    """Return the median time until a frame is back."""
    _, line = await asyncio.get_running_loop().create_connection(Frames, HOST, port)
    sent: list[float] = []
    came: list[float] = []
    sending = asyncio.ensure_future(paced(line, frame, sent))
    for _ in range(MESSAGES):
        await line.came.get()
        came.append(time.perf_counter())
    await sending
    line.transport.close()
    return median(sent, came)


async def time_broker(broker: Served, frame: bytes, offset: int) -> float:
    """Return the median time from sending a message until its consumer has it."""
    loop = asyncio.get_running_loop()
    _, producer = await loop.create_connection(Frames, HOST, broker.port)
    _, consumer = await loop.create_connection(Frames, HOST, broker.port)
    sent: list[float] = []
    came: list[float] = []
    sending = asyncio.ensure_future(paced(producer, frame, sent))
    position = offset
    while len(came) < MESSAGES:
        consumer.transport.write(fetch_frame(TOPIC, position, wait_ms=500))
        answer = await consumer.came.get()
        now = time.perf_counter()
        position = high_watermark(answer)
        came += [now] * (position - offset - len(came))
    await sending
    for line in (producer, consumer):
        line.transport.close()
    return median(sent, came)


def high_watermark(answer: bytes) -> int:
    """Return the high watermark of the only partition, which is at a fixed position."""
    place = 4 + 5 + 10 + 1 + 1 + len(TOPIC) + 1 + 4 + 2
    (found,) = _HIGH_WATERMARK.unpack_from(answer, place)
    assert isinstance(found, int)
    return found


def median(sent: list[float], came: list[float]) -> float:
    """Return the median of the times, without the first ones."""
    return statistics.median(
        end - start for start, end in zip(sent[WARM_UP:], came[WARM_UP:], strict=True)
    )


def main() -> None:
    """Measure and print."""
    frame = produce_frame(TOPIC, a_batch(1, 100))
    bare = ours = float("inf")
    with serving() as broker, echoing() as port:
        broker.create_topic(TOPIC, {"flush.policy": "os"})
        for number in range(ROUNDS):
            bare = min(bare, uvloop.run(time_echo(port, frame)))
            ours = min(ours, uvloop.run(time_broker(broker, frame, number * MESSAGES)))
    line = {
        "figure": "latency",
        "measured": round(ours / bare, 2),
        "unit": "times the echo",
        "ours_us": round(ours * 1e6),
        "echo_us": round(bare * 1e6),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
