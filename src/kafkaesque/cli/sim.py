"""`kafkaesque sim`: the simulated cluster as a command."""

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kafkaesque.cli.main import FAILED
from kafkaesque.sim.broker_run import STEPS as BROKER_STEPS
from kafkaesque.sim.many import Failure, Kind, Totals, run_many, try_seed
from kafkaesque.sim.run import STEPS
from kafkaesque.sim.story import Verdict, tell

_SHOWN_FAILURES_MAX = 10


@click.command(epilog="Example: kafkaesque sim --seeds 200")
@click.argument("seed", type=int, required=False)
@click.option("--seeds", type=click.IntRange(min=1), help="Run this many seeds on all cores.")
@click.option("--first", type=int, default=0, show_default=True, help="The first seed of --seeds.")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    help=f"Steps with faults per seed: {STEPS}, or {BROKER_STEPS} for brokers.",
)
@click.option(
    "--world",
    type=click.Choice([str(kind) for kind in Kind]),
    default=str(Kind.LOGS),
    show_default=True,
    help="Replicated logs (also over narrow links) or brokers (also with bad clocks or disks).",
)
@click.option("--story", "is_story", is_flag=True, help="Show how a leader loses power.")
def sim(
    seed: int | None,
    seeds: int | None,
    first: int,
    steps: int | None,
    world: str,
    *,
    is_story: bool,
) -> int:
    """Run a whole cluster on simulated disks, network and clocks.

    SEED repeats one run exactly; --seeds tries many and counts them; SEED with --story lets a small
    cluster lose its leader in the middle of a write.
    """
    if (seed is None) == (seeds is None):
        raise click.UsageError("give either one SEED or --seeds")
    console = Console()
    if is_story:
        if seed is None:
            raise click.UsageError("--story needs a SEED")
        return 0 if _tell_story(console, seed) else FAILED
    kind = Kind(world)
    if steps is None:
        steps = kind.steps
    if seed is not None:
        return _one(console, seed, steps, kind)
    assert seeds is not None
    return _many(console, range(first, first + seeds), steps, kind)


def _tell_story(console: Console, seed: int) -> bool:
    """Show how a cluster loses its leader in the middle of a write; return whether it ends well."""
    try:
        verdict = tell(seed, lambda line: console.print(f"  {line}", soft_wrap=True))
    except AssertionError as broken:  # a check of the simulator, or one of the code itself
        console.print(f"\n[bold red]A promise was broken:[/bold red] {escape(str(broken))}")
        return False
    console.print(_verdict_table(verdict))
    if verdict.lost:
        console.print("\n[bold red]A promise was broken:[/bold red] what was acknowledged is lost")
    return not verdict.lost


def _verdict_table(verdict: Verdict) -> Table:
    table = Table(title="Verdict", title_justify="left")
    table.add_column("what")
    table.add_column("count", justify="right")
    for what, count in (
        ("batches acknowledged", verdict.acknowledged),
        ("of these lost", verdict.lost),
        ("batches with unknown outcome, and reported as such", verdict.unknown),
        ("records, at offsets dense from 0", verdict.committed_records),
        ("elections", verdict.elections),
        ("simulated steps, all checked", verdict.steps),
    ):
        table.add_row(what, f"{count:,}")
    return table


def _one(console: Console, seed: int, steps: int, kind: Kind) -> int:
    world = "" if kind is Kind.LOGS else f" --world {kind}"
    console.print(f"seed {seed}, repeat it with: kafkaesque sim {seed}{world} --steps {steps}")
    result = try_seed(seed, steps, kind)
    if isinstance(result, Failure):
        console.print(result.trace, markup=False, highlight=False)
        console.print(f"[bold red]seed {seed} broke a promise[/bold red]: {escape(result.error)}")
        console.print(f"repeat it with: {result.command} --steps {steps}", highlight=False)
        return FAILED
    totals = Totals()
    totals.add(result)
    console.print(_table(totals))
    return 0


def _many(console: Console, seeds: range, steps: int, kind: Kind) -> int:
    console.print(f"seeds {seeds.start} to {seeds.stop - 1}, {steps} steps with faults each")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("seeds", total=len(seeds))

        def show(totals: Totals) -> None:
            bar.update(task, completed=totals.seeds)

        totals = run_many(seeds, steps, show, kind=kind)
    console.print(_table(totals))
    for failure in totals.failures[:_SHOWN_FAILURES_MAX]:
        console.print(f"seed {failure.seed}: {failure.error}", markup=False)
        console.print(f"    repeat it with: {failure.command} --steps {steps}", markup=False)
    return FAILED if totals.failures else 0


def _table(totals: Totals) -> Table:
    table = Table(title="Simulated", title_justify="left")
    table.add_column("what")
    table.add_column("count", justify="right")
    rows = {"seeds": totals.seeds, "steps": totals.steps, **dict(sorted(totals.counts.items()))}
    for what, count in rows.items():
        table.add_row(what, f"{count:,}")
    table.add_row("violations", f"{len(totals.failures):,}", style="bold")
    return table
