"""Answers that get lost: what transactions write is there, and their clients do not learn it."""

import random
from pathlib import Path
from types import TracebackType

from kafkaesque.testing.ports import HeldPort
from tests.chaos.brokers import Place
from tests.chaos.job import TRANSACTIONS
from tests.chaos.ways import Ways
from tests.lost_answers import LostAnswers

LOST = 0.15
"""How many answers to what is written in transactions get lost."""


class LossyAnswers(Ways):
    """Each broker stands behind a proxy that breaks connections just before some answers."""

    def __init__(self, brokers: int) -> None:
        super().__init__(brokers)
        self._chance = random.Random(brokers)
        self._proxies: list[LostAnswers] = []
        self._held: list[HeldPort] = []

    @property
    def lost(self) -> int:
        """How many answers got lost so far."""
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
        """Return where a broker is to live, behind a new proxy."""
        proxy = LostAnswers(lambda: self._chance.random() < LOST, of=TRANSACTIONS.encode())
        proxy.__enter__()
        self._proxies.append(proxy)
        held = HeldPort()
        self._held.append(held)
        proxy.target_port = held.port
        return Place(data=data, port=proxy.target_port, advertised=proxy.bootstrap)

    def cut_one_way(self, sender: int, receiver: int) -> None:
        """Raise: here answers get lost, and no way is cut."""
        raise NotImplementedError("a stage of lost answers has no ways to cut")

    def narrow(self, megabits: int) -> None:
        """Raise: as above."""
        raise NotImplementedError("a stage of lost answers has no ways to narrow")

    def heal(self) -> None:
        """Do nothing: answers get lost until the end."""
