"""Runs chosen tests in this process, where a bug may be planted, in the order asked for."""

import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, Phase, settings

SECONDS_MAX = 180
"""For one test or seed: the slowest takes eight, so a longer one is an endless loop or wait."""

AGAIN_SECONDS = 1.0
"""Event loops swallow exceptions of callbacks: it is raised again until it gets through."""

OF_SEEDS = frozenset(
    {
        "test_clusters_on_narrow_links_keep_their_promises",
        "test_damage_to_any_minority_is_found_and_repaired",
        "test_nothing_is_lost_to_disks_that_lose_synced_data",
        "test_power_is_lost_often_enough_to_matter",
    }
)
"""Never run: with a bug a seed is another run, so these can fail because it lacks the faults
that they count, or has others, although no promise is broken. A hunt runs seeds itself.
"""

_PYTEST = ("-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")
_NO_WARNING = ("-W", "ignore::pytest.PytestWarning")
"""Our own plugin is imported already, and pytest warns of that."""


class Hangs(BaseException):
    """A test or a seed does not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The result of one test."""

    test: str
    """Its pytest name."""
    seconds: float
    is_green: bool
    reached: frozenset[str]
    """The targets of planted bugs that it called, if they were watched."""


def play(
    files: Sequence[Path],
    tests: Sequence[str] | None = None,
    reached: set[str] | None = None,
    *,
    is_first_enough: bool = False,
) -> list[Played]:
    """Run these tests of these files in order, or all; until one fails if `is_first_enough`.

    `reached` receives the watched targets.
    """
    player = _Player(tests, set() if reached is None else reached)
    stop = ("-x",) if is_first_enough else ()
    with redirect_stdout(StringIO()):
        pytest.main([*map(str, files), *_PYTEST, *_NO_WARNING, *stop], plugins=[player])
    return player.played


@contextmanager
def limited() -> Iterator[None]:
    """Raise Hangs inside the block when it takes too long."""
    before = signal.signal(signal.SIGALRM, _hang)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hangs(f"not done after {SECONDS_MAX} s")


def _function(item: pytest.Item) -> str:
    """Return the name of a test without its parameters."""
    return item.name.partition("[")[0]


class _Player:
    """A pytest plugin that chooses and orders the tests, and records the result of each."""

    def __init__(self, tests: Sequence[str] | None, reached: set[str]) -> None:
        self.played: list[Played] = []
        self._tests = tests
        self._reached = reached
        self._by_import: frozenset[str] = frozenset()
        self._is_green = True

    def pytest_configure(self) -> None:
        # The first failure is enough: the smallest example is never read.
        settings.register_profile(
            "hunt",
            deadline=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow],
        )
        settings.load_profile("hunt")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note(report.nodeid, 0.0, is_green=False)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._by_import = frozenset(self._reached)
        items[:] = [item for item in items if _function(item) not in OF_SEEDS]
        if self._tests is not None:
            found = {item.nodeid: item for item in items}
            items[:] = [found[test] for test in self._tests if test in found]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._reached.clear()
        self._is_green = True
        started = time.monotonic()
        with limited():
            result = yield
        self._note(item.nodeid, time.monotonic() - started, is_green=self._is_green)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._is_green = False

    def _note(self, test: str, seconds: float, *, is_green: bool) -> None:
        reached = self._by_import | self._reached
        self.played.append(Played(test=test, seconds=seconds, is_green=is_green, reached=reached))
