"""Makes sure that this broker's copy of the catalog lacks nothing, before anything is denied.

A copy may be behind: its broker was paused or cut off, or the newest change is still under way to
it. Nobody notices from inside. So whoever would say that a topic does not exist asks the leader of
the catalog first how far that has come, waits for the copy to get there, and looks again.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from kafkaesque.broker.machine_follower import MachineFollower
from kafkaesque.broker.peers import ReplyTo
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog import Catalog
from kafkaesque.machines.catalog_commands import Carried, Command, MovePartitions, Reply
from kafkaesque.types import Offset

WAIT_TICKS_MAX = 40
"""Two elections one after the other: without a leader for longer there may be none for hours."""

_NOTHING = MovePartitions(moves=[])
"""A change of nothing: whoever carries it out leads, and says how far the catalog has come."""

Told: TypeAlias = Callable[[bool], None]
"""Told once whether the copy holds all that was decided before the question."""


class _Waiting:
    def __init__(self, until: int, told: Told) -> None:
        self.until = until
        self.told: Told | None = told

    def tell(self, is_current: bool) -> None:  # noqa: FBT001
        """Tell it once; later ones do not count."""
        told, self.told = self.told, None
        if told is not None:
            told(is_current)


class Confirming:
    """Those on one broker who must know; one question to the leader serves all who came before it.

    Who comes while one is under way waits for the next: the answer may be older than the question.
    """

    def __init__(
        self,
        ask: Callable[[Command, ReplyTo], None],
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
        """Whether nobody must be asked, because the catalog is led here."""
        return self._is_led()

    def when_current(self, told: Told) -> None:
        """Tell whether the copy holds all that was decided by now, as soon as that is known.

        False if it cannot be known in time: nobody leads the catalog, or it cannot be reached.
        """
        if self._is_led():
            told(True)  # noqa: FBT003
            return
        waiting = _Waiting(self._ticks + WAIT_TICKS_MAX, told)
        self._all.append(waiting)
        self._next.append(waiting)
        self._ask_next()

    def tick(self) -> None:
        """Let a tick pass: give up what takes too long, and ask again if nobody could be asked."""
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
        try:
            self._ask(_NOTHING, partial(self._replied, asking))
        except KafkaesqueError:  # nobody leads just now
            self._is_asking = False
            self._next = asking

    def _replied(self, asking: list[_Waiting], reply: Reply) -> None:
        self._is_asking = False
        if not isinstance(reply, Carried):
            self._next = asking + self._next  # again with the next tick
            return
        self._copy.catch_up()
        self._copy.when_applied(reply.end, partial(self._applied, reply.end, asking))
        self._ask_next()

    def _applied(self, end: Offset, asking: list[_Waiting]) -> None:
        for one in asking:
            one.tell(self._copy.applied >= end)
