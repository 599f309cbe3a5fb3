"""Runs many seeds on several cores: results, failures, and how to reproduce them."""

import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from kafkaesque.sim.broker_run import STEPS as BROKER_STEPS
from kafkaesque.sim.broker_run import run_brokers
from kafkaesque.sim.broker_settings import (
    draw_clocks,
    draw_copies,
    draw_rot,
    draw_setters,
    draw_tails,
)
from kafkaesque.sim.run import STEPS, Report, run_seed
from kafkaesque.sim.settings import draw_narrow

_SEEDS_PER_TASK = 10
_TASKS_AHEAD = 4


class Kind(StrEnum):
    """The kind of simulated nodes."""

    LOGS = "logs"
    """Replicated logs alone: everything that can go wrong below a broker."""
    BROKERS = "brokers"
    """Whole brokers: with catalog, placement, leaders and coordinators on top."""
    NARROW = "narrow"
    """Replicated logs over links on which a large record takes longer than an election."""
    CLOCKS = "clocks"
    """Whole brokers that delete old data, and whose clocks are wrong."""
    COPIES = "copies"
    """Whole brokers whose machines are restored from images of their disks."""

    ROT = "rot"
    """Whole brokers whose disks lose old data."""

    SETTINGS = "settings"
    """Whole brokers whose settings are changed while they run."""

    TAILS = "tails"
    """Whole brokers whose disks lose synced data: ends of logs, and journals."""

    @property
    def steps(self) -> int:
        """How long a seed has faults by default."""
        return STEPS if self in (Kind.LOGS, Kind.NARROW) else BROKER_STEPS


_DRAWN = {
    Kind.CLOCKS: draw_clocks,
    Kind.COPIES: draw_copies,
    Kind.ROT: draw_rot,
    Kind.SETTINGS: draw_setters,
    Kind.TAILS: draw_tails,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A seed that broke an invariant."""

    seed: int
    error: str
    trace: str
    kind: Kind = Kind.LOGS

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        world = "" if self.kind is Kind.LOGS else f" --world {self.kind}"
        return f"kafkaesque sim {self.seed}{world}"


@dataclass(slots=True)
class Totals:
    """Everything that happened in the seeds so far."""

    seeds: int = 0
    steps: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def add(self, result: Report | Failure) -> None:
        """Count one more seed."""
        self.seeds += 1
        if isinstance(result, Failure):
            self.failures.append(result)
            return
        self.steps += result.steps
        for kind, count in result.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + count


def try_seed(seed: int, steps: int, kind: Kind = Kind.LOGS) -> Report | Failure:
    """Run one seed; any failed check or assertion becomes a Failure."""
    try:
        if kind is Kind.LOGS:
            return run_seed(seed, steps)
        if kind is Kind.NARROW:
            return run_seed(seed, steps, draw_narrow(seed))
        draw = _DRAWN.get(kind)
        return run_brokers(seed, steps, None if draw is None else draw(seed))
    except Exception as error:  # noqa: BLE001 - any error is the simulator's finding
        text = f"{type(error).__name__}: {error}"
        return Failure(seed=seed, error=text, trace=traceback.format_exc(), kind=kind)


def run_many(
    seeds: range,
    steps: int,
    progress: Callable[[Totals], None],
    workers: int | None = None,
    kind: Kind = Kind.LOGS,
) -> Totals:
    """Run all these seeds, calling `progress` from time to time."""
    totals = Totals()
    tasks = iter([seeds[at : at + _SEEDS_PER_TASK] for at in range(0, len(seeds), _SEEDS_PER_TASK)])
    count = workers or os.cpu_count() or 1
    with ProcessPoolExecutor(count) as pool:
        for results in _in_order(pool, tasks, (steps, kind), ahead=count * _TASKS_AHEAD):
            for result in results:
                totals.add(result)
            progress(totals)
    return totals


def _in_order(
    pool: ProcessPoolExecutor, tasks: Iterator[range], how: tuple[int, Kind], ahead: int
) -> Iterator[list[Report | Failure]]:
    """Yield results in the order of their seeds, with a bounded number of waiting tasks."""
    waiting = [pool.submit(_run_some, task, *how) for task in islice(tasks, ahead)]
    while waiting:
        yield waiting.pop(0).result()
        waiting += [pool.submit(_run_some, task, *how) for task in islice(tasks, 1)]


def _run_some(seeds: range, steps: int, kind: Kind) -> list[Report | Failure]:
    return [try_seed(seed, steps, kind) for seed in seeds]
