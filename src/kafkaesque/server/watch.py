"""Watches a broker for problems: each is logged once when it lasts, and when it is over."""

import logging
from collections.abc import Callable, Sequence

from kafkaesque.broker.problems import Problem, ProblemKind

log = logging.getLogger(__name__)

LOOK_MS = 5_000
"""How often it looks; no election takes so long while most of the voters are there."""


class Watch:
    """What is wrong with one broker; `look` is called every `LOOK_MS`."""

    def __init__(self, find: Callable[[], Sequence[Problem]]) -> None:
        self._find = find
        self._seen: dict[ProblemKind, Problem] = {}
        self._lasting: dict[ProblemKind, Problem] = {}

    @property
    def problems(self) -> Sequence[Problem]:
        """What was wrong at the last look, without what an election cures."""
        return list(self._lasting.values())

    def look(self) -> None:
        """Look once, and log what has changed."""
        found = {one.kind: one for one in self._find()}
        lasting = {kind: one for kind, one in found.items() if kind.is_final or self._lasts(one)}
        for kind, one in lasting.items():
            if kind not in self._lasting or (kind.is_final and one != self._lasting[kind]):
                log.error("problem kind=%s: %s", kind.value, one.text)
        for kind in self._lasting.keys() - lasting.keys():
            log.info("problem_over kind=%s", kind.value)
        self._seen, self._lasting = found, lasting

    def _lasts(self, one: Problem) -> bool:
        before = self._seen.get(one.kind)
        return before is not None and one.lasts_since(before)
