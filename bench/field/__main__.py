"""Measures the field and writes JSON, a report in Markdown and HTML, and plots."""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.field import report
from bench.field.adapters.activemq import ActiveMq
from bench.field.adapters.kafka import Kafka
from bench.field.adapters.kafkaesque import Kafkaesque
from bench.field.adapters.nats import Nats
from bench.field.adapters.rabbitmq import RabbitMq
from bench.field.adapters.redis import Redis
from bench.field.results import Results, load, save
from bench.field.run import Run
from bench.field.system import System
from bench.field.workload import BRIEF, FULL, QUICK
from tools.repository import ROOT

SYSTEMS: Sequence[type[System]] = (Kafkaesque, Kafka, Nats, Redis, RabbitMq, ActiveMq)
PLANS = {plan.name: plan for plan in (QUICK, FULL, BRIEF)}
FOLDER = ROOT / "bench" / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, write, and print what was skipped and what failed."""
    # On SIGTERM, too, stop what we started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = _options(arguments)
    plan = PLANS[options.plan]
    if options.workloads:
        chosen = [one for one in plan.workloads if one.name in options.workloads]
        plan = replace(plan, workloads=chosen)
    systems = [make() for make in SYSTEMS if not options.systems or make.name in options.systems]
    console = Console(stderr=True)
    if options.report:
        report.write(load(options.folder / "field.json"), options.folder)
        return 0
    run = Run(plan, systems, is_pinned=options.pin)
    minutes = run.expected_seconds / 60
    console.print(f"about {minutes:.0f} minutes on two quiet cores, longer on busy ones")
    results = _measure(run, console, options.folder)
    if results is None:
        console.print("nothing was measured: no system was found")
        return 1
    report.write(results, options.folder)
    for row in results.skipped:
        console.print(f"skipped: {row.what}: {row.reason}; it comes with {row.package}")
    for sentence in results.failures:
        console.print(f"failed: {sentence}")
    console.print(f"written: {options.folder / 'field.html'}")
    return 1 if results.failures else 0


def _measure(run: Run, console: Console, folder: Path) -> Results | None:
    """Run to the end, and save the results after each system, as a run may be interrupted."""
    folder.mkdir(parents=True, exist_ok=True)
    results = None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    began = time.monotonic()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=run.steps)

        def tell(what: str, steps: int) -> None:
            progress.update(bar, description=what, advance=steps)
            if not console.is_terminal and what.endswith(": start"):
                console.print(f"{time.monotonic() - began:4.0f} s  {what}")

        for results in run.go(tell):
            save(results, folder / "field.json")
    return results


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.field", description=__doc__)
    parser.add_argument("--plan", choices=PLANS, default=FULL.name, help="which plan to run")
    parser.add_argument(
        "--quick", action="store_const", dest="plan", const=QUICK.name, help="a few minutes"
    )
    parser.add_argument(
        "--systems",
        nargs="+",
        choices=[make.name for make in SYSTEMS],
        help="only these systems",
    )
    names = dict.fromkeys(one.name for plan in PLANS.values() for one in plan.workloads)
    parser.add_argument(
        "--workloads",
        nargs="+",
        choices=names,
        metavar="NAME",
        help="only these workloads, like latency-1000",
    )
    parser.add_argument(
        "--pin", action="store_true", help="half of the cores for brokers, half for clients"
    )
    parser.add_argument(
        "--report", action="store_true", help="do not measure; write the report of the last run"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder for the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
