"""A real broker in this process, with its own thread, port and folder."""

import asyncio
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from kafkaesque.config import BrokerConfig
from kafkaesque.errors import KafkaesqueError
from kafkaesque.node import Node, NodeSettings
from kafkaesque.testing.ports import HOST, HeldPort

STOP_SECONDS_MAX = 30.0
"""A broker that has not stopped by then never will."""

_DEFAULTS = BrokerConfig()


class Broker:
    """One broker for tests: `with Broker() as broker:`, then `broker.bootstrap` for any client.

    With `data` it keeps its records there; otherwise they are deleted on close. It can be stopped
    and started again on the same port with the same records. Errors of its thread are raised by the
    current call, or by the next one. Not thread-safe: use it from one thread at a time.
    """

    def __init__(
        self,
        data: Path | str | None = None,
        *,
        port: int = 0,
        auto_create_topics: bool = _DEFAULTS.auto_create_topics,
        partitions_default: int = _DEFAULTS.partitions_default,
    ) -> None:
        self._held = HeldPort() if port == 0 else None
        self.port = self._held.port if self._held is not None else port
        self._data = None if data is None else Path(data)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._config = replace(
            _DEFAULTS, auto_create_topics=auto_create_topics, partitions_default=partitions_default
        )
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop_asked: asyncio.Event
        self._started = threading.Event()
        self._error: BaseException | None = None

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` of clients."""
        return f"{HOST}:{self.port}"

    @property
    def data(self) -> Path:
        """The folder with the records; a temporary one exists after the first start."""
        assert self._data is not None, "a temporary folder comes with the first start"
        return self._data

    @property
    def is_running(self) -> bool:
        """Whether it accepts connections."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start it and return when it listens; raises what prevents that, such as CannotListen."""
        assert self._thread is None, "it is running already"
        is_new = self._data is None
        if is_new:
            self._temporary = tempfile.TemporaryDirectory(prefix="kafkaesque-")
            self._data = Path(self._temporary.name)
        self._error = None
        self._started.clear()
        # A daemon: a test that forgets to stop it must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name="kafkaesque-broker", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            # `__exit__` is not called if `__enter__` fails: clean up now.
            try:
                self._join()
            finally:
                if is_new:
                    self._remove()

    def stop(self) -> None:
        """Stop cleanly; acknowledged records are on disk. Raises the broker's failure, if any."""
        if self._thread is None:
            return
        if self.is_running:
            self._loop.call_soon_threadsafe(self._stop_asked.set)
        self._join()

    def close(self) -> None:
        """Stop, and delete the records of a temporary broker."""
        try:
            self.stop()
        finally:
            self._remove()

    def _remove(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = self._data = None

    def _join(self) -> None:
        assert self._thread is not None
        self._thread.join(STOP_SECONDS_MAX)
        if self._thread.is_alive():
            raise KafkaesqueError(f"the broker did not stop within {STOP_SECONDS_MAX} s")
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        asyncio.run(self._watch())

    async def _watch(self) -> None:
        """Serve, and record the error for the caller's thread."""
        self._loop = asyncio.get_running_loop()
        self._stop_asked = asyncio.Event()
        serving = asyncio.ensure_future(self._serve())
        await asyncio.wait([serving])
        self._error = serving.exception()
        self._started.set()

    async def _serve(self) -> None:
        assert self._data is not None
        node = Node(NodeSettings(host=HOST, port=self.port, data=self._data), self._config)
        await node.start()
        node.failure.add_done_callback(lambda _: self._stop_asked.set())
        self.port = node.port
        self._started.set()
        await self._stop_asked.wait()
        failure = node.failure.result() if node.failure.done() else None
        try:
            await node.stop()
        finally:
            if failure is not None:
                raise failure
