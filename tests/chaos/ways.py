"""The network between brokers, and how it is cut; made of namespaces or of proxies."""

from abc import ABC, abstractmethod
from itertools import permutations
from pathlib import Path
from types import TracebackType

from tests.chaos.brokers import BrokerProcess, Place


class Ways(ABC):
    """A network of brokers 1..n and of clients, which are number 0; `with` sets it up."""

    def __init__(self, brokers: int) -> None:
        self._nodes = range(brokers + 1)

    @abstractmethod
    def __enter__(self) -> "Ways": ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    @abstractmethod
    def place(self, node: int, data: Path, secret: Path) -> Place:
        """Return where a broker will run."""

    @abstractmethod
    def cut_one_way(self, sender: int, receiver: int) -> None:
        """Drop everything that one node sends to the other; the other direction works."""

    @abstractmethod
    def heal(self) -> None:
        """Undo all cuts."""

    @abstractmethod
    def narrow(self, megabits: int) -> None:
        """Limit what each broker sends to this many megabits per second."""

    @property
    def clients_prefix(self) -> tuple[str, ...]:
        """The command that runs a client where it reaches the brokers; empty for here."""
        return ()

    def started(self, node: int, broker: BrokerProcess) -> None:  # noqa: B027  (few need it)
        """Called when a broker serves for the first time."""

    def cut(self, one: int, other: int) -> None:
        """Cut both directions."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def isolate(self, node: int, *, also_from_clients: bool = False) -> None:
        """Cut a broker off from all other brokers, and on request from the clients."""
        for other in self._nodes:
            if other != node and (other != 0 or also_from_clients):
                self.cut(node, other)

    def split(self, *halves: tuple[int, ...]) -> None:
        """Cut all connections between the brokers of different parts."""
        for one, other in permutations(halves, 2):
            for sender in one:
                for receiver in other:
                    self.cut_one_way(sender, receiver)
