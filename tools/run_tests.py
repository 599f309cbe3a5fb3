"""Runs the tests in groups and shows their time against the budgets, and the slowest tests.

Groups run in two parallel lanes, because some compute and others mostly wait. Exceeding a budget is
a warning and not a failure, because machines differ. `--all` also runs the tests marked `long`, and
`--long GROUP` those of one group; they have no budget.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from tools.repository import ROOT

TOTAL_MINUTES_MAX = 8.0
"""For all groups together, on two otherwise idle cores."""

NO_TESTS_COLLECTED = 5
"""pytest's exit code when a group has no tests."""

MARKS = ("simulation", "compat", "chaos", "spark")
"""The marks that have their own group; a new group's mark is added here."""

SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
"""Spark is large, so it has its own environment; `make spark` creates it."""

REPORTS = ROOT / ".cache" / "test-reports"
SLOWEST_SHOWN = 15
FAILURE_LINES_SHOWN = 40
"""Lines shown of a failed test's output, from its end, where the reason is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some of the tests, with their budget in minutes."""

    name: str
    marks: str
    minutes_max: float
    workers: int = 0
    """Processes that share the tests; more than cores if many tests wait for other processes."""
    ignored: tuple[str, ...] = ()
    """Warnings that are not failures here."""
    is_whole: bool = False
    """Whether its long tests run, too; then it has no budget."""
    python: Path = Path(sys.executable)
    """The interpreter of the environment that these tests need."""

    @property
    def is_installed(self) -> bool:
        """Whether that environment exists."""
        return self.python.exists()

    def whole(self) -> "Group":
        """Return the group including its long tests."""
        return replace(self, is_whole=True)

    def run_by(self, python: Path) -> "Group":
        """Return the group for the interpreter of another environment."""
        return replace(self, python=python)


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """pytest's report of one test."""

    seconds: float
    """Including its fixtures."""
    name: str
    failure: str = ""
    """The text of its failure or error; empty if it passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one group."""

    group: Group
    minutes: float
    exit_code: int
    tests: tuple[Test, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the group has any tests."""
        return self.exit_code != NO_TESTS_COLLECTED

    @property
    def failed(self) -> bool:
        """Whether a test or pytest itself failed."""
        return self.exit_code not in (0, NO_TESTS_COLLECTED)


GROUPS = (
    Group(name="unit", marks=" and ".join(f"not {m}" for m in MARKS), minutes_max=5, workers=2),
    Group(name="simulation", marks="simulation", minutes_max=3, workers=2),
    Group(
        name="compatibility",
        marks="compat",
        minutes_max=4,
        workers=2,
        # Other clients leave sockets open when a broker is killed; we cannot fix that.
        ignored=("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"),
    ),
    Group(name="chaos", marks="chaos", minutes_max=2),
    Group(name="spark", marks="spark", minutes_max=4, python=SPARK_PYTHON),
)
LANES = (("unit", "spark"), ("compatibility", "chaos", "simulation"))
"""Names of groups that run one after another, in parallel with the other lane."""


def command(group: Group) -> list[str]:
    """Return the command line that runs one group."""
    marks = group.marks if group.is_whole else f"({group.marks}) and not long"
    ignored = [f"-Wignore::{warning}" for warning in group.ignored]
    pytest = [str(group.python), "-m", "pytest", "-q", "-n", str(group.workers)]
    spread = ["--dist", "worksteal"] if group.workers else []  # neighbours share fixtures
    return [*pytest, *spread, f"--junitxml={report(group)}", *ignored, "-m", marks]


def report(group: Group) -> Path:
    """Return the file to which pytest writes its report of a group."""
    return REPORTS / f"{group.name}.xml"


def results(path: Path) -> tuple[Test, ...]:
    """Return pytest's report of each test; empty if it did not get that far."""
    if not path.exists():
        return ()
    return tuple(
        Test(
            seconds=float(case.attrib["time"]),
            name=f"{case.attrib['classname']}::{case.attrib['name']}",
            failure="\n".join(
                found.text or found.attrib.get("message", "")
                for found in case
                if found.tag in ("failure", "error")
            ),
        )
        for case in ElementTree.parse(path).iter("testcase")
    )


def run(group: Group) -> Outcome:
    """Run one group to its end, and then print its output."""
    if not group.is_installed:
        print(f"{group.name}: not installed, so not tested; run: make spark")
        return Outcome(group=group, minutes=0.0, exit_code=NO_TESTS_COLLECTED)
    print(f"== {group.name} starts", flush=True)
    report(group).unlink(missing_ok=True)
    started = time.monotonic()
    words = command(group)
    done = subprocess.run(
        words, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    minutes = (time.monotonic() - started) / 60
    print(f"== {group.name}\n{done.stdout}", end="", flush=True)
    found = results(report(group))
    return Outcome(group=group, minutes=minutes, exit_code=done.returncode, tests=found)


def run_all(groups: Iterable[Group]) -> tuple[list[Outcome], float]:
    """Run groups, those of a lane in turn; return their outcomes and the minutes taken."""
    wanted = {group.name: group for group in groups}

    def run_lane(names: Sequence[str]) -> list[Outcome]:
        return [run(wanted[name]) for name in names if name in wanted]

    started = time.monotonic()
    with ThreadPoolExecutor(len(LANES)) as pool:
        lanes = list(pool.map(run_lane, LANES))
    found = {outcome.group.name: outcome for lane in lanes for outcome in lane}
    return [found[name] for name in wanted], (time.monotonic() - started) / 60


def verdict(outcome: Outcome) -> str:
    """Return the verdict of a group in a word or two."""
    if not outcome.group.is_installed:
        return "NOT INSTALLED, not tested"
    if not outcome.exists:
        return "no tests yet"
    if outcome.failed:
        return "FAILED"
    if outcome.minutes > outcome.group.minutes_max and not outcome.group.is_whole:
        return "over budget"
    return "ok"


def table(outcomes: Sequence[Outcome], minutes: float) -> list[str]:
    """Return the lines of the budget table; `minutes` is the total time."""
    lines = [f"{'group':<15}{'asked':>8}{'taken':>8}   minutes"]
    for outcome in outcomes:
        taken = f"{outcome.minutes:.2f}" if outcome.exists else "-"
        lines.append(
            f"{outcome.group.name:<15}{outcome.group.minutes_max:>8.0f}{taken:>8}"
            f"   {verdict(outcome)}"
        )
    lines.append(f"{'all':<15}{TOTAL_MINUTES_MAX:>8.0f}{minutes:>8.2f}")
    return lines


def slowest(outcomes: Sequence[Outcome], count: int = SLOWEST_SHOWN) -> list[str]:
    """Return the lines that name the slowest tests of all groups, slowest first."""
    tests = [test for outcome in outcomes for test in outcome.tests]
    if not tests:
        return []
    tests.sort(key=lambda test: test.seconds, reverse=True)
    shown = [f"{test.seconds:>8.1f}  {test.name}" for test in tests[:count]]
    return ["slowest tests, in seconds", *shown]


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """Return which tests failed and how. They come last, because logs are cut at their start."""
    failed = [test for outcome in outcomes for test in outcome.tests if test.failure]
    lines = []
    for test in failed:
        lines += ["", f"FAILED {test.name}", *test.failure.splitlines()[-FAILURE_LINES_SHOWN:]]
    return lines


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Return 1 if a group failed, or if there were no tests."""
    has_failed = any(outcome.failed for outcome in outcomes)
    return int(has_failed or not any(outcome.exists for outcome in outcomes))


def main() -> int:
    """Run all groups, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [group.name for group in GROUPS]
    parser.add_argument("--all", action="store_true", help="also run the tests marked long")
    parser.add_argument(
        "--long",
        choices=names,
        action="append",
        default=[],
        help="also run the long tests of this group",
    )
    parser.add_argument("--without", choices=names, action="append", default=[], help="leave out")
    parser.add_argument("--only", choices=names, help="leave out all others")
    options = parser.parse_args()
    wanted = [group for group in GROUPS if options.only in (None, group.name)]
    chosen = [group for group in wanted if group.name not in options.without]
    is_long = names if options.all else options.long
    chosen = [group.whole() if group.name in is_long else group for group in chosen]
    outcomes, minutes = run_all(chosen)
    lines = table(outcomes, minutes)
    print("\n" + "\n".join([*lines, "", *slowest(outcomes), *failures(outcomes)]))
    return exit_code(outcomes)


if __name__ == "__main__":
    sys.exit(main())
