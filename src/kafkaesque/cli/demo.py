"""`kafkaesque demo`: three brokers, real clients, Spark, and a kill -9 in the middle."""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from kafkaesque.cli.demo_cluster import DemoCluster
from kafkaesque.cli.demo_spark import Pipeline, wanted_sessions
from kafkaesque.cli.demo_text import dialogue
from kafkaesque.cli.demo_traffic import (
    PARTITIONS,
    RATE,
    REPLICAS,
    TOPIC,
    Clicks,
    Verdict,
    compare,
    create_topic,
    read_all,
)
from kafkaesque.cli.main import FAILED
from kafkaesque.types import NodeId

SECONDS = 60
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Removed from pictures: they would be fetched from elsewhere."""
COLUMNS = 80
_DOCTOR_SECONDS_MAX = 30
_LINES = (
    "CRTP notes 1 3",
    'PUBS notes {"Key":"k","Header":"h","Body":"by hand"}',
    "SUBS notes readers",
    "CONS notes {id} 0",
)
_TRY_NEXT = (
    ("{command} cluster up", "three brokers on ports 9092 to 9094"),
    ("telnet localhost 9092", "then type HELP"),
    ("{command} doctor", "what is wrong, and how to fix it"),
    ("{command} pipeline list", "ready-made jobs on Spark"),
)


@click.command(epilog="Example: kafkaesque demo --spark .venv-spark/bin/python")
@click.option("--seed", default=7, show_default=True, help="Seed of the visitors.")
@click.option(
    "--seconds",
    type=click.IntRange(6),
    default=SECONDS,
    show_default=True,
    help="How long the traffic lasts.",
)
@click.option(
    "--spark",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Python with Spark; without it the demo skips Spark.",
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save what was shown as an SVG.",
)
def demo(seed: int, seconds: int, spark: Path | None, picture: Path | None) -> int:
    """Watch three brokers lose one of them and no records."""
    console = Console(highlight=False, record=picture is not None)
    with tempfile.TemporaryDirectory(prefix="kafkaesque-demo-") as folder:
        story = _Story(console, Path(folder), seed, seconds, spark)
        try:
            is_good = story.tell()
        finally:
            story.close()
    if picture is not None:
        drawn = _FONTS.sub("", console.export_svg(title="make demo"))
        picture.write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n")
    return 0 if is_good else FAILED


class _Story:
    """The demonstration's steps in order; everything printed was read from the run."""

    def __init__(
        self, console: Console, folder: Path, seed: int, seconds: int, spark: Path | None
    ) -> None:
        self._console = console
        self._folder = folder
        self._seed = seed
        self._seconds = seconds
        self._spark = spark
        self._began = time.monotonic()
        self._cluster = DemoCluster(folder)
        self._clicks: Clicks | None = None
        self._pipeline: Pipeline | None = None

    def tell(self) -> bool:
        """Run all of it; return whether every promise was kept."""
        self._start_brokers()
        create_topic(self._cluster.bootstrap)
        leaders = self._cluster.wait_for_leaders(TOPIC, PARTITIONS)
        clicks = self._clicks = Clicks(self._cluster.bootstrap, self._seed)
        clicks.begin()
        began = time.monotonic()
        self._say(
            f"topic {TOPIC}: {PARTITIONS} partitions, {REPLICAS} replicas, synced on a majority;"
        )
        self._more(f"confluent-kafka sends {RATE} events a second")
        self._say_traffic(clicks)
        is_text_good = self._talk(leaders)
        if self._spark is not None:
            self._wait_for_spark(began + 0.5 * self._seconds)
        self._wait(began, 0.55)
        self._say_traffic(clicks)
        dead = self._kill(leaders)
        self._wait(began, 0.75)
        self._bring_back(dead)
        self._wait(began, 1.0)
        self._say_traffic(clicks)
        clicks.end()
        return self._judge(clicks, is_text_good=is_text_good)

    def close(self) -> None:
        """Stop everything that was started."""
        if self._clicks is not None:
            self._clicks.close()
        if self._pipeline is not None:
            self._pipeline.stop()
        self._cluster.stop()

    # ── the story ────────────────────────────────────────────────────────────────────────────

    def _start_brokers(self) -> None:
        took_ms = self._cluster.start()
        table = Table(title="Three brokers, one cluster", title_justify="left")
        for column in ("broker", "address", "pid", "start ms"):
            table.add_column(column, justify="right")
        for node, broker in self._cluster.brokers.items():
            table.add_row(str(node), broker.bootstrap, str(broker.pid), f"{took_ms[node]:,.0f}")
        self._console.print(table)
        if self._spark is None:
            self._say("without Spark: name a Python that has it with --spark")
        else:
            self._pipeline = Pipeline(self._spark, self._cluster.bootstrap, self._folder)
            self._say("Spark starts in the background")

    def _talk(self, leaders: dict[int, NodeId]) -> bool:
        """Type at a broker that does not lead the first partition."""
        other = next(node for node in self._cluster.brokers if node != leaders[0])
        port = self._cluster.brokers[other].port
        self._say(f"the same port by telnet 127.0.0.1 {port}, any broker will do:")

        def say(line: str, answer: str) -> None:
            self._more(f"> {line}")
            self._more(f"< {answer}")

        answers = dialogue(port, list(_LINES), say)
        return answers[:2] == ["Done", "Done"] and "by hand" in answers[3]

    def _wait_for_spark(self, deadline: float) -> None:
        assert self._pipeline is not None
        while time.monotonic() < deadline and self._pipeline.is_running:
            fares = self._pipeline.fares()
            if fares is not None and fares.rows > 0:
                self._say(
                    f"Spark, pipeline activity: {fares.rows:,} rows read, {fares.rows_per_s:,.0f} "
                    f"rows/s, lag {fares.lag:,}, last batch {fares.batch_ms:,} ms"
                )
                return
            time.sleep(0.2)
        self._say("Spark is still at its first batch")

    def _kill(self, leaders: dict[int, NodeId]) -> NodeId:
        dead = self._cluster.leaders(TOPIC).get(0) or leaders[0]
        led = {index for index, node in self._cluster.leaders(TOPIC).items() if node == dead}
        broker = self._cluster.brokers[dead]
        self._say(f"kill -9 {broker.pid}: broker {dead}, which leads partitions {sorted(led)}")
        broker.kill()
        for index, took_ms in sorted(self._cluster.elections_ms(TOPIC, dead, led).items()):
            node = self._cluster.leaders(TOPIC).get(index)
            self._more(f"partition {index}: broker {node} leads after {took_ms:,.0f} ms")
        self._more("kafkaesque doctor says:")
        for line in self._doctor(dead):
            self._more(f"  {line}")
        return dead

    def _bring_back(self, dead: NodeId) -> None:
        broker = self._cluster.brokers[dead]
        began = time.perf_counter()
        broker.start()
        took_ms = (time.perf_counter() - began) * 1000
        self._say(f"broker {dead} is back, pid {broker.pid}, and has caught up: {took_ms:,.0f} ms")

    def _judge(self, clicks: Clicks, *, is_text_good: bool) -> bool:
        sent = clicks.sent
        name, seen = read_all(self._cluster.bootstrap, len(sent.acknowledged))
        self._say(f"the traffic has ended; {name} has read {len(seen):,} records in a group")
        verdict = compare(sent.acknowledged, seen, clicks.order)
        table = _table(verdict, clicks)
        is_good = verdict.is_good and sent.refused == 0 and is_text_good
        if self._pipeline is not None:
            safe = [sent.events[value] for value in sent.acknowledged.values()]
            found, equal = self._pipeline.drain(safe)
            wanted = wanted_sessions(safe)
            table.add_row("sessions, from Spark", f"{found:,}")
            table.add_row("of these as plain Python finds them", f"{equal:,} of {wanted:,}")
            is_good = is_good and found == equal == wanted > 0
        self._console.print(table)
        if is_good:
            self._console.print("Try next:")
            command = typed_command(Path(sys.argv[0]))
            lines = [(line.format(command=command), why) for line, why in _TRY_NEXT]
            width = max(len(line) for line, _ in lines)
            for line, why in lines:
                self._console.print(f"  {line:<{width}} {why}")
        else:
            self._console.print("[bold]A promise was broken.[/bold]")
        return is_good

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _doctor(self, dead: NodeId) -> list[str]:
        """Return what the doctor finds about the killed broker."""
        command = [sys.executable, "-m", "kafkaesque", "doctor"]
        command += ["--bootstrap", self._cluster.bootstrap]
        found = subprocess.run(
            command, capture_output=True, text=True, timeout=_DOCTOR_SECONDS_MAX, check=False
        )
        lines = found.stdout.splitlines()
        return [line for line in lines if f"broker {dead}" in line][:1] or lines[:1]

    def _say_traffic(self, clicks: Clicks) -> None:
        sent = clicks.sent
        line = f"{len(sent.acknowledged):,} acknowledged, p99 {clicks.p99_ms():,.0f} ms"
        fares = self._pipeline.fares() if self._pipeline is not None else None
        if fares is not None:
            line += f"; Spark {fares.rows:,} rows, lag {fares.lag:,}, {fares.batch_ms:,} ms a batch"
        self._say(line)

    def _say(self, line: str) -> None:
        seconds = time.monotonic() - self._began
        self._console.print(f"{seconds:5.1f} s  {line}", markup=False, soft_wrap=True)

    def _more(self, line: str) -> None:
        self._console.print(f"         {line}", markup=False, soft_wrap=True)

    def _wait(self, began: float, share: float) -> None:
        """Wait until this share of the traffic's time has passed."""
        time.sleep(max(0.0, began + share * self._seconds - time.monotonic()))


def typed_command(called: Path) -> str:
    """Return what to type to run a program here: only its name if the shell finds it."""
    found = shutil.which(called.name)
    if found is not None and called.exists() and Path(found).samefile(called):
        return called.name
    here = Path.cwd()
    return str(called.relative_to(here) if called.is_relative_to(here) else called)


def _table(verdict: Verdict, clicks: Clicks) -> Table:
    table = Table(title="Verdict", title_justify="left")
    table.add_column("what")
    table.add_column("count", justify="right")
    for what, count in (
        ("events sent", len(clicks.sent.events)),
        ("acknowledged, before and after a kill -9", verdict.acknowledged),
        ("of these lost", verdict.lost),
        ("there twice", verdict.twice),
        ("in another order", verdict.reordered),
        ("elsewhere than acknowledged", verdict.elsewhere),
        ("refused", clicks.sent.refused),
    ):
        table.add_row(what, f"{count:,}")
    pause = f"{clicks.sent.longest_pause_ms:,.0f} ms"
    table.add_row("longest pause between two acknowledgements", pause)
    return table
