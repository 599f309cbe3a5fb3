"""Proxies in front of a test cluster's brokers, so that the paths between them can be cut.

The first frame of a link, which is plain, identifies the dialing broker. A cut path neither drops
nor refuses bytes: they simply stop flowing, as with an unplugged cable. Clients are never cut off.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from kafkaesque.server.edge.listening_sockets import stop_listening
from kafkaesque.testing.ports import HOST, HeldPort
from kafkaesque.types import NodeId

_CHUNK_BYTES = 256 << 10
_LINK_BYTE = 1
_LENGTH_BYTES = 4
_HELLO_BYTES_MAX = 64 << 10
_NODE_AT, _DIRECTORY_AT = 4, 6
_SECONDS_MAX = 30.0

T = TypeVar("T")

Who = Callable[[], NodeId | None]
"""Returns the broker at an end of a connection; called each time, because a joining broker has no
number yet when it dials or is dialed, and its links outlive that."""


def _a_client() -> NodeId | None:
    return None


class Ways:
    """The open paths between brokers; `directories` identifies visitors, which send no number."""

    def __init__(self) -> None:
        self.directories: dict[bytes, NodeId] = {}
        self._cut: set[tuple[NodeId, NodeId]] = set()
        self._healed = asyncio.Event()
        self._bytes_per_second: int | None = None

    def narrow(self, bytes_per_second: int) -> None:
        """Limit the rate from each broker to each other one."""
        self._bytes_per_second = bytes_per_second

    def cut(self, source: NodeId, target: NodeId) -> None:
        """Stop all bytes from one broker to another."""
        self._cut.add((source, target))

    def heal(self) -> None:
        """Restore all paths."""
        self._cut.clear()
        self._healed.set()
        self._healed = asyncio.Event()

    async def until_open(self, source: Who, target: Who) -> None:
        """Wait until bytes may pass."""
        while (source(), target()) in self._cut:
            await self._healed.wait()

    async def pass_on(self, count: int, source: Who, target: Who) -> None:
        """Sleep for the transfer time of these bytes between brokers; clients are not slowed."""
        if self._bytes_per_second and None not in (source(), target()):
            await asyncio.sleep(count / self._bytes_per_second)


class Proxy:
    """The address of one broker, as all others see it."""

    def __init__(self, ways: Ways) -> None:
        self.node: NodeId | None = None
        """The broker behind it, once it has a number."""
        self._held = HeldPort()
        self.port = self._held.port
        self.target_port = 0
        self._ways = ways
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Accept connections; always on the same port."""
        assert self._server is None
        self._server = await asyncio.start_server(self._accept, HOST, self.port)

    async def hang_up(self) -> None:
        """Stop accepting and close all connections, as the system does when a process ends."""
        if self._server is not None:
            server, self._server = self._server, None
            await stop_listening([server])
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                await self._carry(reader, writer)
        finally:
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(_CHUNK_BYTES)
        dialer: Who = _a_client
        if first and first[0] == _LINK_BYTE:
            first, dialer = await self._dialer(first, reader)
        await self._ways.until_open(dialer, self._who)
        onward, back = await asyncio.open_connection(HOST, self.target_port)
        try:
            back.write(first)
            async with asyncio.TaskGroup() as pair:
                pair.create_task(self._pipe(reader, back, dialer, self._who))
                pair.create_task(self._pipe(onward, writer, self._who, dialer))
        except* OSError:
            pass
        finally:
            back.transport.abort()

    async def _pipe(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: Who,
        target: Who,
    ) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await self._ways.until_open(source, target)
            await self._ways.pass_on(len(data), source, target)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    def _who(self) -> NodeId | None:
        return self.node

    async def _dialer(self, first: bytes, reader: asyncio.StreamReader) -> tuple[bytes, Who]:
        """Read a link's first frame; return all bytes read, and the dialing broker."""
        begin = 1 + _LENGTH_BYTES
        while len(first) < begin or len(first) < begin + _length(first):
            more = await reader.read(_CHUNK_BYTES)
            if not more:
                return first, _a_client
            first += more
        hello = msgspec.msgpack.decode(first[begin : begin + _length(first)])
        node, directory = hello[_NODE_AT], hello[_DIRECTORY_AT]
        return first, lambda: node or self._ways.directories.get(directory)


class ProxyThread:
    """An event loop in its own thread for all proxies of one cluster."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="kafkaesque-proxies", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS_MAX)

    def call(self, action: Callable[[], T]) -> T:
        """Call a function that does not wait on the loop."""

        async def act() -> T:
            return action()

        return self.run(act())

    def close(self) -> None:
        """Stop the loop, after all proxies have closed."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS_MAX)
        self._loop.close()


def _length(first: bytes) -> int:
    return min(_HELLO_BYTES_MAX, int.from_bytes(first[1 : 1 + _LENGTH_BYTES], "big"))
