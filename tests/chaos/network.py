"""A network of namespaces: one for each broker, one with the bridge for the clients.

A cut uses a wrong hardware address for the other side: packets leave and are not received, so both
sides hear nothing, as after pulling a cable. It works in one direction or in both, and needs
nothing but `ip`.
"""

import os
import subprocess
from itertools import count
from pathlib import Path
from types import TracebackType

from tests.chaos.brokers import Place
from tests.chaos.ways import Ways

_NOBODY = "02:00:00:00:00:00"
_PORT = 9092
_NUMBERS = count()


class Network(Ways):
    """Addresses 10.99.0.N for the brokers 1..n; clients run at the hub, number 0."""

    def __init__(self, brokers: int) -> None:
        super().__init__(brokers)
        self._name = f"kq{os.getpid()}-{next(_NUMBERS)}"
        self._cut: set[tuple[int, int]] = set()

    def __enter__(self) -> "Network":
        hub = self._namespace(0)
        for node in self._nodes:
            _ip("netns", "add", self._namespace(node))
            self._inside(node, "link", "set", "lo", "up")
        self._inside(0, "link", "add", "eth0", "type", "bridge")
        self._inside(0, "addr", "add", f"{self.address(0)}/24", "dev", "eth0")
        self._inside(0, "link", "set", "eth0", "up")
        for node in self._nodes[1:]:
            port = f"port{node}"
            self._inside(
                *(node, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", hub)
            )
            self._inside(0, "link", "set", port, "master", "eth0", "up")
            self._inside(node, "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
            self._inside(node, "link", "set", "eth0", "up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for node in self._nodes:
            _ip("netns", "del", self._namespace(node))

    def address(self, node: int) -> str:
        """Return the address at which others reach a node."""
        return f"10.99.0.{node or 254}"

    def prefix(self, node: int) -> tuple[str, ...]:
        """Return the command that runs another one on this node."""
        return ("ip", "netns", "exec", self._namespace(node))

    def place(self, node: int, data: Path, secret: Path) -> Place:
        """Return where a broker will run."""
        return Place(
            data=data,
            host=self.address(node),
            port=_PORT,
            prefix=self.prefix(node),
            secret=secret,
        )

    @property
    def clients_prefix(self) -> tuple[str, ...]:
        """The command that runs a client where it reaches the brokers."""
        return self.prefix(0)

    def cut_one_way(self, sender: int, receiver: int) -> None:
        """Drop everything that one node sends to the other; the other direction works."""
        if (sender, receiver) not in self._cut:
            self._cut.add((sender, receiver))
            address = self.address(receiver)
            self._inside(
                *(sender, "neigh", "replace", address, "lladdr", _NOBODY),
                *("dev", "eth0", "nud", "permanent"),
            )

    def heal(self) -> None:
        """Undo all cuts."""
        for sender, receiver in self._cut:
            self._inside(sender, "neigh", "del", self.address(receiver), "dev", "eth0")
        self._cut.clear()

    def narrow(self, megabits: int) -> None:
        """Limit what each broker sends, also to clients, to this many megabits per second."""
        for node in self._nodes[1:]:
            _run(
                *("tc", "-n", self._namespace(node), "qdisc", "replace", "dev", "eth0", "root"),
                *("tbf", "rate", f"{megabits}mbit", "burst", "64kb", "latency", "50ms"),
            )

    def _namespace(self, node: int) -> str:
        return f"{self._name}-{node}"

    def _inside(self, node: int, *words: str) -> None:
        _ip("-n", self._namespace(node), *words)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
