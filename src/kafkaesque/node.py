"""The composition root: builds a broker with everything that it stands on, and runs it."""

import asyncio
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.store import Store
from kafkaesque.clock import SystemClock
from kafkaesque.config import BrokerConfig, LogConfig
from kafkaesque.errors import CannotListen, DiskFailed, LogError
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.server.connection import Connection

_NODE = 1
_BACKLOG = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Where a broker listens and keeps its data."""

    host: str = "127.0.0.1"
    port: int = 9092
    data: Path = Path("data")


class Node:
    """A running broker: `start`, then `port` is where it listens, then `stop`."""

    def __init__(self, settings: NodeSettings, broker: BrokerConfig | None = None) -> None:
        self._settings = settings
        self._config = broker or BrokerConfig()
        self.failure: asyncio.Future[LogError]
        self.port = 0
        self._connections: set[Connection] = set()

    async def start(self) -> None:
        """Open the data folder and begin to listen."""
        loop = asyncio.get_running_loop()
        self.failure = loop.create_future()
        try:
            self._disk = PosixDisk(self._settings.data, post=loop.call_soon_threadsafe)
        except OSError as error:
            folder = self._settings.data
            raise DiskFailed(f"cannot use {folder} for data: {error.strerror}") from error
        try:
            await self._open()
        except LogError:
            self._disk.close()
            raise
        try:
            self._server = await loop.create_server(
                lambda: Connection(self.broker, self._connections),
                self._settings.host,
                self._settings.port,
                backlog=_BACKLOG,
            )
        except OSError as error:
            self._close()
            where = f"{self._settings.host}:{self._settings.port}"
            raise CannotListen(f"cannot listen on {where}: {error.strerror}") from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def _open(self) -> None:
        self._disk.lock()
        clock = SystemClock()
        store = Store.open(self._disk, LogConfig(), clock, _NODE, self._on_failed)
        chance = random.Random()
        self.broker = Broker(_NODE, store, clock, chance, self._config, self._on_failed)
        ready = asyncio.Event()
        self.failure.add_done_callback(lambda _: ready.set())
        self.broker.start(ready.set)
        self._tick()
        await ready.wait()
        if self.failure.done():
            self._timer.cancel()
            raise self.failure.result()

    async def stop(self) -> None:
        """Stop cleanly: no more requests, everything durable."""
        self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)  # lets the connections learn of it
        self._close()

    def _close(self) -> None:
        self._timer.cancel()
        try:
            self.broker.stop()
        finally:  # without room for its last word the journal stands as after a kill
            self._disk.close()

    def _tick(self) -> None:
        self.broker.tick()
        delay = self._config.tick_ms / 1000
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _on_failed(self, error: LogError) -> None:
        if not self.failure.done():
            self.failure.set_result(error)


async def serve(settings: NodeSettings, started: Callable[[Node], None]) -> LogError | None:
    """Run until a signal comes, or until the disk fails; return what failed."""
    node = Node(settings)
    await node.start()
    started(node)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    node.failure.add_done_callback(lambda _: stopped.set())
    await stopped.wait()
    if node.failure.done():
        return node.failure.result()
    await node.stop()
    return None
