"""`kafkaesque pipeline`: the ready-made jobs on Spark."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kafkaesque.cli.options import bootstrap_option, json_option
from kafkaesque.cli.output import Output, Table
from kafkaesque.client.admin import Admin
from kafkaesque.clock import SystemClock
from kafkaesque.errors import KafkaesqueError, SparkMissing, TopicExists
from kafkaesque.spark.pipelines.catalog import PIPELINES, Pipeline

_PARTITIONS = 4
_FLUSH_SECONDS_MAX = 60.0
_MILLISECONDS_PER_MESSAGE = 2_000
"""How far apart made-up events are on average."""

_NAME = click.Choice(list(PIPELINES))


@click.group()
def pipeline() -> None:
    """Run ready-made jobs on Spark, and make up data for them."""


@pipeline.command("list", epilog="Example: kafkaesque pipeline list")
@json_option
def list_(is_json: bool) -> None:  # noqa: FBT001 - given by click
    """List the pipelines."""
    rows = [(one.name, one.topic, one.summary) for one in PIPELINES.values()]
    Output(is_json=is_json).table(
        Table(kind="pipeline", columns=("name", "topic", "what it does"), rows=rows)
    )


@pipeline.command(epilog="Example: kafkaesque pipeline generate activity --count 20000")
@click.argument("name", type=_NAME)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="How many records.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Another seed, other data.")
@bootstrap_option
@json_option
def generate(name: str, count: int, seed: int, bootstrap: str, is_json: bool) -> None:  # noqa: FBT001
    """Fill a pipeline's topic with made-up records; it is created if it is not there."""
    chosen = PIPELINES[name]
    _create_topics(bootstrap, [chosen.topic])
    start_ms = SystemClock().now_ms() - count * _MILLISECONDS_PER_MESSAGE
    _send(chosen, bootstrap, seed, count, start_ms)
    Output(is_json=is_json).done(
        f"sent {count:,} records to topic {chosen.topic}", topic=chosen.topic, records=count
    )


@pipeline.command(epilog="Example: kafkaesque pipeline run activity --once")
@click.argument("name", type=_NAME)
@click.option("--once", "is_once", is_flag=True, help="End when all that is there is done.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where tables and checkpoints are kept  [default: pipelines/NAME]",
)
@click.option("--master", default="local[2]", show_default=True, help="Where Spark runs.")
@bootstrap_option
def run(name: str, is_once: bool, folder: Path | None, master: str, bootstrap: str) -> None:  # noqa: FBT001
    """Run a pipeline, until it is interrupted or with --once to the end of its topic."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkMissing("Spark is not installed: install kafkaesque-broker with the extra spark")
    from kafkaesque.spark.pipelines.blocks import Place
    from kafkaesque.spark.session import session

    module = importlib.import_module(PIPELINES[name].module)
    settings = getattr(module, PIPELINES[name].settings)()
    place = Place(
        bootstrap=bootstrap, folder=(folder or Path("pipelines") / name).absolute(), is_once=is_once
    )
    _create_topics(bootstrap, settings.topics)
    spark = session(f"kafkaesque-{name}", master=master, settings=_QUIET)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        _watch(module.jobs(spark, place, settings), is_once=is_once)
    finally:
        spark.stop()
    click.echo(f"tables: {place.folder / 'tables'}")


_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2"}


def _watch(jobs: Sequence[Any], *, is_once: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    from kafkaesque.spark.pipelines import running

    console = Console()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        fares = running.run(
            jobs,
            lambda now: live.update(running.table(now), refresh=True),
            is_in_turn=is_once,
        )
    console.print(running.table(fares))


def _create_topics(bootstrap: str, topics: Sequence[str]) -> None:
    with Admin(bootstrap) as admin:
        for topic in topics:
            try:
                admin.topics.create(topic, partitions=_PARTITIONS)
            except TopicExists:
                continue


def _send(chosen: Pipeline, bootstrap: str, seed: int, count: int, start_ms: int) -> None:
    from confluent_kafka import Producer

    failures: list[str] = []

    def note(error: Any, _message: Any) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "queue.buffering.max.messages": count + 1,
        }
    )
    for message in chosen.messages(seed, count, start_ms):
        producer.produce(chosen.topic, message.value, message.key, on_delivery=note)
        producer.poll(0)
    unsent = producer.flush(_FLUSH_SECONDS_MAX)
    if failures or unsent:
        reason = failures[0] if failures else "no answer came in time"
        raise KafkaesqueError(f"{len(failures) + unsent:,} records were not taken: {reason}")
