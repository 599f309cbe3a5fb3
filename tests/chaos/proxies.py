"""A network of proxies, for machines without namespaces; clients are never cut off in it."""

from pathlib import Path
from types import TracebackType

from kafkaesque.broker.storage.identity import PATH as IDENTITY
from kafkaesque.broker.storage.identity import decode_identity
from kafkaesque.testing import proxy
from kafkaesque.testing.ports import HOST, HeldPort
from kafkaesque.testing.proxy import Proxy, ProxyThread
from tests.chaos.brokers import BrokerProcess, Place
from tests.chaos.ways import Ways


class Proxies(Ways):
    """Each broker is behind a proxy and advertises the proxy's address."""

    def __init__(self, brokers: int) -> None:
        super().__init__(brokers)
        self._proxies: dict[int, Proxy] = {}
        self._held: dict[int, HeldPort] = {}

    def __enter__(self) -> "Proxies":
        self._thread = ProxyThread()
        self._ways = self._thread.call(proxy.Ways)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for one in self._proxies.values():
            self._thread.run(one.hang_up())
        self._thread.close()

    def place(self, node: int, data: Path, secret: Path) -> Place:
        """Return where a broker will run, behind a new proxy."""
        one = self._thread.call(lambda: Proxy(self._ways))
        self._thread.run(one.listen())
        held = self._held[node] = HeldPort()
        one.target_port = held.port
        self._proxies[node] = one
        return Place(data=data, port=one.target_port, advertised=f"{HOST}:{one.port}")

    def started(self, node: int, broker: BrokerProcess) -> None:
        """Pass the addresses of all brokers to the proxies."""
        assert broker.number == node
        identity = decode_identity((broker.place.data / IDENTITY).read_bytes())
        self._ways.directories[identity.directory] = node
        self._proxies[node].node = node

    def cut_one_way(self, sender: int, receiver: int) -> None:
        """Drop everything that one broker sends to the other; clients are not affected."""
        if sender and receiver:
            self._thread.call(lambda: self._ways.cut(sender, receiver))

    def narrow(self, megabits: int) -> None:
        """Limit the traffic from each broker to each other one to this many megabits per second."""
        self._thread.call(lambda: self._ways.narrow(megabits * 1_000_000 // 8))

    def heal(self) -> None:
        """Undo all cuts."""
        self._thread.call(self._ways.heal)
