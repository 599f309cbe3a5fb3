"""Ensures that this broker's copy of the catalog is current before it denies anything.

A copy may lag: its broker was paused or cut off, or the newest change is still on its way. The
broker itself cannot notice that. So before it says that a topic does not exist, it asks the leader
of the catalog for the catalog's end, waits for the copy to get there, and checks again.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from kafkaesque.broker.machine_hosting.machine_follower import MachineFollower
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_commands import (
    AskCatalog,
    Carried,
    CatalogAnswer,
    MovePartitions,
)
from kafkaesque.types import Offset

WAIT_TICKS_MAX = 40
"""Two elections in a row: if there is no leader by then, there may be none for hours."""

_NOTHING = MovePartitions(moves=[])
"""A change of nothing: the leader that carries it out reports the catalog's end."""

Told: TypeAlias = Callable[[bool], None]
"""Called once with whether the copy holds all that was decided before the question."""


class _Waiting:
    def __init__(self, until: int, told: Told) -> None:
        self.until = until
        self.told: Told | None = told

    def tell(self, is_current: bool) -> None:  # noqa: FBT001
        """Call back once; later calls are ignored."""
        told, self.told = self.told, None
        if told is not None:
            told(is_current)


class Confirming:
    """The callers on one broker that must know; one question serves all that came before it.

    A caller that comes while one is in flight waits for the next: the answer may predate it.
    """

    def __init__(
        self,
        ask: AskCatalog,
        copy: MachineFollower[Catalog],
        is_led: Callable[[], bool],
    ) -> None:
        self._ask = ask
        self._copy = copy
        self._is_led = is_led
        self._ticks = 0
        self._is_asking = False
        self._next: list[_Waiting] = []
        self._all: list[_Waiting] = []

    @property
    def is_certain(self) -> bool:
        """Whether no question is needed, because the catalog is led here."""
        return self._is_led()

    def when_current(self, told: Told) -> None:
        """Call back once it is known whether the copy holds all that was decided by now.

        False if that stays unknown for too long: the catalog has no leader, or it is unreachable.
        """
        if self._is_led():
            told(True)  # noqa: FBT003
            return
        waiting = _Waiting(self._ticks + WAIT_TICKS_MAX, told)
        self._all.append(waiting)
        self._next.append(waiting)
        self._ask_next()

    def tick(self) -> None:
        """Advance one tick: give up overdue callers, and retry a question without a leader."""
        self._ticks += 1
        if not self._all:
            return
        for one in self._all:
            if self._ticks >= one.until:
                one.tell(False)  # noqa: FBT003
        self._all = [one for one in self._all if one.told is not None]
        self._next = [one for one in self._next if one.told is not None]
        self._ask_next()

    def _ask_next(self) -> None:
        if self._is_asking or not self._next:
            return
        asking, self._next = self._next, []
        self._is_asking = True
        self._ask(_NOTHING, partial(self._answered, asking))

    def _answered(self, asking: list[_Waiting], answer: CatalogAnswer) -> None:
        self._is_asking = False
        if not isinstance(answer, Carried):
            self._next = asking + self._next  # retried at the next tick
            return
        self._copy.catch_up()
        self._copy.when_applied(answer.end, partial(self._applied, answer.end, asking))
        self._ask_next()

    def _applied(self, end: Offset, asking: list[_Waiting]) -> None:
        for one in asking:
            one.tell(self._copy.applied >= end)
