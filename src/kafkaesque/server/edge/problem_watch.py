"""Watches a broker for problems: reports each lasting one once, and its end once.

A problem that an event of this run has already reported is not logged again: it shows only in
`/health`, the metrics and `kafkaesque doctor`.
"""

from collections.abc import Callable, Mapping, Sequence

from kafkaesque.broker.problems import Problem, ProblemKind
from kafkaesque.events import (
    DamageFound,
    DiskFull,
    Event,
    Events,
    OldCopyTold,
    PartitionOffline,
    ProblemBegun,
    ProblemOver,
    RefillWaits,
    ReplicaStopped,
    TailLost,
)

LOOK_MS = 5_000
"""How often it looks; no election takes this long while most voters are up."""

TOLD_BY: Mapping[ProblemKind, tuple[type[Event], ...]] = {
    ProblemKind.DISK_FULL: (DiskFull,),
    ProblemKind.DAMAGED: (DamageFound, PartitionOffline, ReplicaStopped),
    ProblemKind.UNFILLED: (RefillWaits,),
    ProblemKind.OLD_COPY: (OldCopyTold,),
    ProblemKind.TAIL_LOST: (TailLost,),
}
"""The events that report a problem at its start. Damage that an earlier run found has no event."""


class Watch:
    """The problems of one broker; `look` is called every `LOOK_MS`."""

    def __init__(
        self,
        find: Callable[[], Sequence[Problem]],
        events: Events,
        counts: Callable[[], Mapping[str, int]],
    ) -> None:
        self._find = find
        self._events = events
        self._counts = counts
        self._told: set[ProblemKind] = set()
        self._seen: dict[ProblemKind, Problem] = {}
        self._lasting: dict[ProblemKind, Problem] = {}

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems at the last look, without those that an election cures."""
        return list(self._lasting.values())

    def look(self) -> None:
        """Look once, and report changes."""
        found = {one.kind: one for one in self._find()}
        lasting = {kind: one for kind, one in found.items() if kind.is_final or self._lasts(one)}
        for kind, one in lasting.items():
            if kind not in self._lasting or (kind.is_final and one != self._lasting[kind]):
                self._tell(one)
        for kind in sorted(self._told - lasting.keys()):
            self._told.discard(kind)
            self._events.tell(ProblemOver(kind=kind.value))
        self._seen, self._lasting = found, lasting

    def _tell(self, one: Problem) -> None:
        counts = self._counts()
        if not any(counts.get(event.name, 0) for event in TOLD_BY.get(one.kind, ())):
            self._told.add(one.kind)
            self._events.tell(ProblemBegun(kind=one.kind.value, text=one.text))

    def _lasts(self, one: Problem) -> bool:
        before = self._seen.get(one.kind)
        return before is not None and one.lasts_since(before)
