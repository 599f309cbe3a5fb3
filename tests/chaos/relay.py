"""Forwards bytes between regions with a delay: `python -m tests.chaos.relay JSON`.

Where the system cannot delay packets, brokers advertise an address at which this listens. The
source address of a connection identifies its region: if it is another one, connecting and every
byte are delayed, in each direction.
"""

import asyncio
import json
import sys
from collections import deque
from dataclasses import asdict, dataclass
from functools import partial

_CHUNK_BYTES = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where to listen, which region each address is in, and the delay between regions."""

    ways: tuple[tuple[str, str], ...]
    """The address to listen at, and that of the broker behind it."""
    port: int
    regions: dict[str, str]
    """The region of each address."""
    one_way_ms: int

    def to_json(self) -> str:
        """Return it as a command takes it."""
        return json.dumps(asdict(self))

    def delay_s(self, one: str, other: str) -> float:
        """Return the delay between two addresses."""
        is_near = self.regions.get(one) == self.regions.get(other)
        return 0.0 if is_near else self.one_way_ms / 1000


async def _carry(
    plan: Plan, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    source = writer.get_extra_info("peername")[0]
    delay_s = plan.delay_s(source, target)
    try:
        await asyncio.sleep(2 * delay_s)
        onward, back = await asyncio.open_connection(target, plan.port)
    except OSError:
        writer.transport.abort()
        return
    try:
        async with asyncio.TaskGroup() as pair:
            pair.create_task(_pipe(reader, back, delay_s))
            pair.create_task(_pipe(onward, writer, delay_s))
    except* OSError:
        pass
    finally:
        back.transport.abort()
        writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Forward each piece after the delay; an end of stream ends both directions."""
    loop = asyncio.get_running_loop()
    waiting: deque[tuple[float, bytes]] = deque()
    has_more = asyncio.Event()

    async def write() -> None:
        while True:
            while not waiting:
                has_more.clear()
                await has_more.wait()
            due, data = waiting.popleft()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                raise ConnectionResetError
            writer.write(data)
            await writer.drain()

    writing = asyncio.ensure_future(write())
    try:
        data = b"?"
        while data:
            try:
                data = await reader.read(_CHUNK_BYTES)
            except ConnectionError:
                data = b""
            waiting.append((loop.time() + delay_s, data))
            has_more.set()
        await writing
    finally:
        writing.cancel()


async def _main(plan: Plan) -> None:
    for listen, target in plan.ways:
        await asyncio.start_server(partial(_carry, plan, target), listen, plan.port)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(Plan(**json.loads(sys.argv[1]))))
