"""A cluster of real broker processes that can be killed, paused and cut off."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from kafkaesque.broker.storage.identity import PATH as IDENTITY
from kafkaesque.broker.storage.identity import decode_identity
from kafkaesque.errors import KafkaesqueError
from kafkaesque.testing.leaders import leaders_of
from kafkaesque.testing.ports import HOST
from kafkaesque.testing.process import BrokerProcess
from kafkaesque.testing.proxy import Proxy, ProxyThread, Ways
from kafkaesque.testing.voters import LOOK_EVERY_S, SETTLE_SECONDS_MAX, await_voters
from kafkaesque.types import NodeId


class Cluster:
    """Brokers for tests: `with Cluster(3) as cluster:`, then `cluster.bootstrap` for any client.

    Brokers are numbered from 1. Each can be killed, paused and started again, and the path between
    two of them can be cut. With `data` all records stay there; otherwise they are deleted at the
    end. `settings` are environment variables such as KAFKAESQUE_BROKER_AUTO_CREATE_TOPICS; changes
    to them apply to brokers started afterwards. Not thread-safe: use it from one thread at a time.
    """

    def __init__(
        self,
        brokers: int = 3,
        data: Path | str | None = None,
        *,
        racks: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        assert brokers > 0
        self._count = brokers
        self._data = None if data is None else Path(data)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._racks = list(racks)
        self.settings = dict(settings or {})
        self._thread: ProxyThread | None = None
        self._ways: Ways
        self._brokers: dict[NodeId, BrokerProcess] = {}
        self._proxies: dict[NodeId, Proxy] = {}
        self._made = 0

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ── inspecting ───────────────────────────────────────────────────────────────────────────

    @property
    def nodes(self) -> list[NodeId]:
        """The numbers of all brokers that were ever started."""
        return sorted(self._brokers)

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` of clients: the addresses of all brokers."""
        return ",".join(f"{HOST}:{self._proxies[node].port}" for node in self.nodes)

    def address(self, node: NodeId) -> str:
        """Return the address of one broker."""
        return f"{HOST}:{self._proxies[node].port}"

    def process(self, node: NodeId) -> BrokerProcess:
        """Return the process of one broker."""
        return self._brokers[node]

    def leader(self, topic: str, partition: int = 0) -> NodeId:
        """Return the leader of a partition; waits until there is one."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            for node in self._running():
                found = leaders_of(HOST, self._brokers[node].port, topic).get(partition)
                if found in self._brokers and self._brokers[found].is_running:
                    return found
            time.sleep(LOOK_EVERY_S)
        raise KafkaesqueError(f"partition {partition} of {topic} has no leader")

    # ── starting and stopping ────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start all brokers: the first creates the cluster, the others join it in parallel.

        Returns when the catalog has as many voters as it will get: from then on any broker of three
        may be killed.
        """
        assert not self._brokers, "it runs already"
        if self._data is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="kafkaesque-")
            self._data = Path(self._temporary.name)
        self._thread = ProxyThread()
        self._ways = self._thread.call(Ways)
        try:
            self.add()
            with ThreadPoolExecutor(max(1, self._count - 1)) as pool:
                list(pool.map(lambda _: self.add(), range(self._count - 1)))
            await_voters(self.bootstrap, self._count)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all brokers, and delete the records of a temporary cluster."""
        try:
            for broker in self._brokers.values():
                broker.kill()
            if self._thread is not None:
                for proxy in self._proxies.values():
                    self._thread.run(proxy.hang_up())
                self._thread.close()
        finally:
            self._thread = None
            self._brokers.clear()
            self._proxies.clear()
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = self._data = None

    def add(self) -> NodeId:
        """Start one more broker; return its number."""
        assert self._thread is not None
        assert self._data is not None
        self._made += 1
        place = self._made
        proxy = self._thread.call(lambda: Proxy(self._ways))
        self._thread.run(proxy.listen())
        flags = ["--advertised", f"{HOST}:{proxy.port}"]
        if self._proxies:
            flags += ["--join", f"{HOST}:{next(iter(self._proxies.values())).port}"]
        if self._racks:
            flags += ["--rack", self._racks[(place - 1) % len(self._racks)]]
        broker = BrokerProcess(self._data / f"broker-{place}", flags, environment=self.settings)
        proxy.target_port = broker.port
        try:
            broker.start()
        except BaseException:
            broker.kill()
            self._thread.run(proxy.hang_up())
            raise
        identity = decode_identity((broker.data / IDENTITY).read_bytes())
        self._ways.directories[identity.directory] = broker.node
        proxy.node = broker.node
        self._brokers[broker.node] = broker
        self._proxies[broker.node] = proxy
        return broker.node

    # ── faults and recovery ──────────────────────────────────────────────────────────────────

    def kill(self, node: NodeId) -> None:
        """Kill a broker at once, like a crash."""
        self._brokers[node].kill()
        self._hang_up(node)

    def stop(self, node: NodeId) -> None:
        """Stop a broker cleanly."""
        self._brokers[node].stop()
        self._hang_up(node)

    def restart(self, node: NodeId) -> None:
        """Restart a stopped broker, with its records and its address."""
        assert self._thread is not None
        self._hang_up(node)  # it may have exited on its own
        self._thread.run(self._proxies[node].listen())
        self._brokers[node].settings = dict(self.settings)
        self._brokers[node].start()

    def pause(self, node: NodeId) -> None:
        """Suspend a broker until `resume`."""
        self._brokers[node].pause()

    def resume(self, node: NodeId) -> None:
        """Resume a paused broker."""
        self._brokers[node].resume()

    def cut(self, first: NodeId, second: NodeId, *, is_one_way: bool = False) -> None:
        """Cut the path between two brokers, or only from the first to the second."""
        assert self._thread is not None
        self._thread.call(lambda: self._ways.cut(first, second))
        if not is_one_way:
            self._thread.call(lambda: self._ways.cut(second, first))

    def isolate(self, node: NodeId) -> None:
        """Cut one broker off from all others."""
        for other in self.nodes:
            if other != node:
                self.cut(node, other)

    def heal(self) -> None:
        """Undo all faults: restore paths, resume paused brokers, start stopped ones."""
        assert self._thread is not None
        self._thread.call(self._ways.heal)
        for node, broker in self._brokers.items():
            broker.resume()
            if not broker.is_running:
                self.restart(node)

    def _hang_up(self, node: NodeId) -> None:
        assert self._thread is not None
        self._thread.run(self._proxies[node].hang_up())

    def _running(self) -> list[NodeId]:
        return [node for node in self.nodes if self._brokers[node].is_running]
