"""`kafkaesque demo`: a broker is used, killed and asked by telnet; then a cluster, simulated."""

import tempfile
import time
from pathlib import Path
from statistics import quantiles

import click
from rich.console import Console
from rich.table import Table

from kafkaesque.cli.demo_broker import DemoBroker
from kafkaesque.cli.demo_traffic import Clicks, DemoFailed, Verdict, compare, create_topic, read_all
from kafkaesque.cli.main import FAILED
from kafkaesque.cli.sim import tell_story

RECORDS = 20_000
_TRY_NEXT = (
    (".venv/bin/kafkaesque serve", "a broker on localhost:9092"),
    ("telnet localhost 9092", "then type HELP"),
    (".venv/bin/kafkaesque topic list", "and produce, consume, group: see --help"),
    ("make sim SEEDS=500", "500 clusters under random faults, counted"),
    ("make mutants", "break a rule on purpose and see it caught"),
)


@click.command(epilog="Example: kafkaesque demo --seed 7")
@click.option("--seed", default=7, show_default=True, help="Another story of the cluster.")
@click.option(
    "--records",
    type=click.IntRange(100),
    default=RECORDS,
    show_default=True,
    help="Records to send.",
)
def demo(seed: int, records: int) -> int:
    """Watch a broker and a cluster lose power, and no record."""
    console = Console(highlight=False)
    console.print("[bold]One broker, real clients[/bold]")
    with tempfile.TemporaryDirectory(prefix="kafkaesque-demo-") as folder:
        broker = DemoBroker(Path(folder) / "data")
        try:
            is_good = _one_broker(console, broker, records)
        finally:
            broker.stop()
    console.print("\n[bold]A cluster, simulated[/bold]")
    is_good = tell_story(console, seed) and is_good
    if not is_good:
        return FAILED
    console.print("\nTry next:")
    for command, why in _TRY_NEXT:
        console.print(f"  {command:<34} {why}")
    return 0


def _one_broker(console: Console, broker: DemoBroker, records: int) -> bool:
    took_ms = broker.start()
    console.print(f"  started in {took_ms:.0f} ms: pid {broker.pid}, {broker.bootstrap}")
    create_topic(broker.bootstrap)
    clicks = Clicks(broker.bootstrap)
    clicks.begin()
    begun = time.perf_counter()
    clicks.send(records // 2)
    clicks.wait()
    rate = len(clicks.sent.latencies_ms) / (time.perf_counter() - begun)
    console.print(f"  confluent-kafka: {len(clicks.sent.acknowledged):,} records acknowledged,")
    console.print(f"    each of them synced ({rate:,.0f}/s, p99 {_p99(clicks):.0f} ms)")
    clicks.send(records - len(clicks.sent.acknowledged))
    killed = broker.pid
    broker.kill()
    console.print(f"  kill -9 {killed}, with the second half under way")
    took_ms = broker.start()
    console.print(f"  started again in {took_ms:.0f} ms on the same folder; the producer goes on")
    clicks.wait()
    name, seen = read_all(broker.bootstrap, records)
    console.print(f"  {name}: {len(seen):,} records read by a consumer group")
    verdict = compare(clicks.sent.acknowledged, seen)
    is_text_good = _text(console, broker)
    console.print(_table(verdict, clicks))
    return verdict.is_good and clicks.sent.refused == 0 and is_text_good


def _text(console: Console, broker: DemoBroker) -> bool:
    console.print(f"  the same port by telnet 127.0.0.1 {broker.port}:")

    def say(line: str, answer: str) -> None:
        console.print(f"    > {line}", markup=False, soft_wrap=True)
        console.print(f"    < {answer}", markup=False, soft_wrap=True)

    answers = broker.dialogue(
        [
            "CRTP notes 1",
            'PUBS notes {"Key":"k","Header":"h","Body":"by hand"}',
            "SUBS notes readers",
            "CONS notes {id} 0",
        ],
        say,
    )
    return answers[0] == "Done" and answers[1] == "Done" and "by hand" in answers[3]


def _p99(clicks: Clicks) -> float:
    latencies = clicks.sent.latencies_ms
    if len(latencies) < 2:
        raise DemoFailed("no record was acknowledged")
    return quantiles(latencies, n=100)[-1]


def _table(verdict: Verdict, clicks: Clicks) -> Table:
    table = Table(title="Verdict", title_justify="left")
    table.add_column("what")
    table.add_column("count", justify="right")
    for what, count in (
        ("records acknowledged, before and after a kill -9", verdict.acknowledged),
        ("of these lost", verdict.lost),
        ("records there twice", verdict.twice),
        ("records elsewhere than acknowledged", verdict.elsewhere),
        ("records refused", clicks.sent.refused),
    ):
        table.add_row(what, f"{count:,}")
    return table
