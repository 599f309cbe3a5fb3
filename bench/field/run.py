"""One run: the systems take turns in every round, each started alone in a fresh folder."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from bench.field import fetched, machine
from bench.field.expected import expected_seconds
from bench.field.measuring import Session, call
from bench.field.processes import Failed, NotStarted, halves, pinned
from bench.field.results import Machine, Measurement, Participant, Results, Skipped
from bench.field.system import Missing, Running, System, Variant
from bench.field.workload import Plan
from tools.repository import ROOT

_LOOPBACK_SECONDS = 1

Tell = Callable[[str, int], None]
"""Gets what is done now, and how many steps have ended since the last call."""


class Run:
    """One plan for the available systems."""

    def __init__(self, plan: Plan, systems: Sequence[System], *, is_pinned: bool) -> None:
        self._plan = plan
        self._is_pinned = is_pinned
        self._load_before = 0.0
        self._loopback = 0.0
        self._touched_bytes = 0
        self._clients: dict[str, str] = {}
        self._skipped: list[Skipped] = []
        self._failures: list[str] = []
        self._found: list[Measurement] = []
        self._entries = [pair for system in systems for pair in self._available(system)]

    @property
    def steps(self) -> int:
        """The number of steps that will be reported."""
        return sum(
            1 + len(self._plan.for_variant(variant, number))
            for number in range(self._plan.rounds)
            for _, variant in self._entries
        )

    @property
    def expected_seconds(self) -> float:
        """The expected time on two otherwise idle cores."""
        return expected_seconds(self._plan, [variant for _, variant in self._entries])

    def go(self, tell: Tell) -> Iterator[Results]:
        """Measure everything, and yield the results so far after each system.

        Failures are recorded and the rest continues.
        """
        self._load_before = machine.load()
        for number in range(self._plan.rounds):
            self._loopback = max(self._loopback, _loopback())
            # In opposite order each time: slow changes then affect all alike.
            for system, variant in self._entries[:: -1 if number % 2 else 1]:
                self._session(system, variant, number, tell)
                yield self._results()

    def _results(self) -> Results:
        return Results(
            plan=self._plan.name,
            commit=_commit(),
            date=time.strftime("%Y-%m-%d", time.gmtime()),
            rounds=1 + max((found.round for found in self._found), default=0),
            machine=Machine(
                processor=machine.processor(),
                cores=machine.cores(),
                memory_bytes=machine.memory_bytes(),
                system=f"Linux, Python {sys.version.split()[0]}",
                loopback_bytes_per_second=self._loopback,
                load_before=self._load_before,
                load_after=machine.load(),
                is_pinned=self._is_pinned,
                touched_bytes=self._touched_bytes,
            ),
            participants=[self._participant(*pair) for pair in self._entries],
            skipped=self._skipped,
            failures=self._failures,
            measurements=self._found,
            titles={workload.name: workload.title for workload in self._plan.workloads},
        )

    def _available(self, system: System) -> Iterator[tuple[System, Variant]]:
        try:
            system.version()
            for variant in system.variants():
                fetched.driver_command(variant.driver)
                if self._plan.for_variant(variant, 0):
                    yield system, variant
        except Missing as missing:
            row = Skipped(what=system.title, reason=missing.reason, package=missing.package)
            self._skipped.append(row)

    def _session(self, system: System, variant: Variant, number: int, tell: Tell) -> None:
        planned = self._plan.for_variant(variant, number)
        broker_cores, client_cores = halves()
        tell(f"{variant.title}: start", 0)
        with (
            tempfile.TemporaryDirectory(prefix="field-", ignore_cleanup_errors=True) as name,
            self._on(client_cores),
        ):
            folder = Path(name)
            try:
                system.prepare(variant, folder)
                start = time.perf_counter()
                with self._on(broker_cores):
                    running = system.start(variant, folder)
            except NotStarted as problem:
                self._failures.append(f"{variant.title} did not start: {problem}")
                tell(variant.title, 1 + len(planned))
                return
            with _stopped_at_last(running):
                session = Session(
                    system, variant, running, plan=self._plan, round_number=number, folder=folder
                )
                with self._noting(f"{variant.title}, start"):
                    self._found.append(session.first_message(start))
                    self._clients[variant.name] = session.client
                    session.warm_up()
                for workload in planned:
                    tell(f"{variant.title}: {workload.name}", 1)
                    with self._noting(f"{variant.title}, {workload.name}"):
                        self._found.extend(session.run(workload))
                self._touched_bytes += session.touched_bytes
        tell(variant.title, 1)

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (Failed, Missing) as problem:
            self._failures.append(f"{what}: {problem}")

    def _on(self, cores: set[int]) -> AbstractContextManager[None]:
        return pinned(cores) if self._is_pinned else nullcontext()

    def _participant(self, system: System, variant: Variant) -> Participant:
        return Participant(
            variant=variant.name,
            title=variant.title,
            system=system.title,
            version=system.version(),
            durability=variant.durability.value,
            is_default=variant.is_default,
            settings=variant.settings,
            client=self._clients.get(variant.name, ""),
        )


@contextmanager
def _stopped_at_last(running: Running) -> Iterator[None]:
    try:
        yield
    finally:
        running.stop()


def _loopback() -> float:
    """Return the bytes per second that loopback carries now; 0 without a compiler."""
    try:
        found = call([str(fetched.driver("replay")), "loopback", str(_LOOPBACK_SECONDS)])
    except Missing:
        return 0.0
    return float(found["bytes"] / found["seconds"])


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"
