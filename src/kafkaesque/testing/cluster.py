"""A cluster of real brokers, each a process of its own, that can be hurt in all the usual ways."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from kafkaesque.broker.identity import PATH as IDENTITY
from kafkaesque.broker.identity import decode_identity
from kafkaesque.errors import KafkaesqueError
from kafkaesque.testing.leaders import leaders_of
from kafkaesque.testing.ports import HOST
from kafkaesque.testing.process import BrokerProcess
from kafkaesque.testing.proxy import Proxy, ProxyThread, Ways
from kafkaesque.testing.voters import LOOK_EVERY_S, SETTLE_SECONDS_MAX, await_voters
from kafkaesque.types import NodeId


class Cluster:
    """Brokers for tests: `with Cluster(3) as cluster:`, then `cluster.bootstrap` for any client.

    Brokers have the numbers from 1 on. Each can be killed, paused and started again, and the way
    between two of them can be cut. With `data` all records stay there, else they are gone at the
    end. `settings` are environment variables such as KAFKAESQUE_BROKER_AUTO_CREATE_TOPICS; what is
    changed in them holds for brokers that are started from then on. It is to be used by one thread
    at a time.
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

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    @property
    def nodes(self) -> list[NodeId]:
        """The numbers of all brokers that were ever started."""
        return sorted(self._brokers)

    @property
    def bootstrap(self) -> str:
        """What clients are given: the addresses of all brokers."""
        return ",".join(f"{HOST}:{self._proxies[node].port}" for node in self.nodes)

    def address(self, node: NodeId) -> str:
        """Return the address of one broker."""
        return f"{HOST}:{self._proxies[node].port}"

    def process(self, node: NodeId) -> BrokerProcess:
        """Return the process of one broker."""
        return self._brokers[node]

    def leader(self, topic: str, partition: int = 0) -> NodeId:
        """Return who leads a partition, waiting until somebody does."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            for node in self._running():
                found = leaders_of(HOST, self._brokers[node].port, topic).get(partition)
                if found in self._brokers and self._brokers[found].is_running:
                    return found
            time.sleep(LOOK_EVERY_S)
        raise KafkaesqueError(f"nobody leads partition {partition} of {topic}")

    # ── life ─────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start all brokers: the first begins the cluster, the others join it together.

        Returns when the catalog has as many voters as it will get: from then on any broker of
        three may be killed.
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
        """Stop all brokers, and remove the records of a temporary cluster."""
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

    # ── harm and help ────────────────────────────────────────────────────────────────────────

    def kill(self, node: NodeId) -> None:
        """End a broker at once, as a crash does."""
        self._brokers[node].kill()
        self._hang_up(node)

    def stop(self, node: NodeId) -> None:
        """Let a broker stop cleanly."""
        self._brokers[node].stop()
        self._hang_up(node)

    def restart(self, node: NodeId) -> None:
        """Start a broker again that is down, with its records and its address."""
        assert self._thread is not None
        self._hang_up(node)  # it may have ended by itself
        self._thread.run(self._proxies[node].listen())
        self._brokers[node].settings = dict(self.settings)
        self._brokers[node].start()

    def pause(self, node: NodeId) -> None:
        """Let a broker stand still until `resume`."""
        self._brokers[node].pause()

    def resume(self, node: NodeId) -> None:
        """Let a broker go on that was paused."""
        self._brokers[node].resume()

    def cut(self, first: NodeId, second: NodeId, *, is_one_way: bool = False) -> None:
        """Let nothing pass between two brokers, or only from the second to the first."""
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
        """Undo all harm: mend the ways, let all go on, start those that are down."""
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
