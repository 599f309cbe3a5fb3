"""Lost answers: transactional writes are executed, and their clients do not learn it."""

import random
from pathlib import Path
from types import TracebackType

from kafkaesque.testing.ports import HeldPort
from tests.chaos.brokers import Place
from tests.chaos.job import TRANSACTIONS
from tests.chaos.ways import Ways
from tests.lost_answers import LostAnswers

LOST = 0.15
"""How many answers to transactional writes get lost."""


class LossyAnswers(Ways):
    """Each broker is behind a proxy that breaks connections just before some answers."""

    def __init__(self, brokers: int) -> None:
        super().__init__(brokers)
        self._chance = random.Random(brokers)
        self._proxies: list[LostAnswers] = []
        self._held: list[HeldPort] = []

    @property
    def lost(self) -> int:
        """How many answers have been lost so far."""
        return sum(one.count for one in self._proxies)

    def __enter__(self) -> "LossyAnswers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for one in self._proxies:
            one.__exit__(kind, error, traceback)

    def place(self, node: int, data: Path, secret: Path) -> Place:
        """Return where a broker will run, behind a new proxy."""
        proxy = LostAnswers(lambda: self._chance.random() < LOST, of=TRANSACTIONS.encode())
        proxy.__enter__()
        self._proxies.append(proxy)
        held = HeldPort()
        self._held.append(held)
        proxy.target_port = held.port
        return Place(data=data, port=proxy.target_port, advertised=proxy.bootstrap)

    def cut_one_way(self, sender: int, receiver: int) -> None:
        """Raise: this network loses answers and makes no cuts."""
        raise NotImplementedError("a network that loses answers cannot be cut")

    def narrow(self, megabits: int) -> None:
        """Raise: this network does not limit bandwidth."""
        raise NotImplementedError("a network that loses answers cannot limit bandwidth")

    def heal(self) -> None:
        """Do nothing: answers get lost until the end."""
