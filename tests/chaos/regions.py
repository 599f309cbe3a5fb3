"""A network of regions: each broker is in a separate one, and traffic between regions is delayed.

Made of namespaces and of a relay on the hub (`relay.py`), because few systems can delay packets.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from tests.chaos.brokers import Place
from tests.chaos.network import Network
from tests.chaos.relay import Plan
from tools.repository import ROOT

_PORT = 9092
_HOUSE = 100
"""The addresses of brokers on the hub: this base, with the broker's number in it."""


class Regions(Network):
    """Brokers 1..n, each in the region of its number; `prefix(n)` runs a client there."""

    def __init__(self, brokers: int, round_trip_ms: int) -> None:
        super().__init__(brokers)
        self._round_trip_ms = round_trip_ms
        self._relay: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Regions":
        super().__enter__()
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def _begin(self) -> None:
        nodes = self._nodes[1:]
        for node in nodes:
            self._inside(0, "addr", "add", f"{self.told(node)}/24", "dev", "eth0")
        plan = Plan(
            ways=tuple((self.told(node), self.address(node)) for node in nodes),
            port=_PORT,
            regions={self.address(node): str(node) for node in nodes},
            one_way_ms=self._round_trip_ms // 2,
        )
        self._relay = subprocess.Popen(
            [*self.prefix(0), sys.executable, "-m", "tests.chaos.relay", plan.to_json()],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self._relay.stdout is not None
        assert self._relay.stdout.readline() == b"ready\n", "the relay listens"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._relay is not None:
            self._relay.kill()
            self._relay.communicate()
        super().__exit__(None, None, None)

    def told(self, node: int) -> str:
        """Return the address at which clients and brokers reach a broker."""
        return f"10.99.0.{_HOUSE + node}"

    def place(self, node: int, data: Path, secret: Path) -> Place:
        """Return where a broker will run."""
        place = super().place(node, data, secret)
        return replace(
            place,
            advertised=f"{self.told(node)}:{_PORT}",
            environment={"KAFKAESQUE_SERVER_RACK": f"region-{node}"},
        )
