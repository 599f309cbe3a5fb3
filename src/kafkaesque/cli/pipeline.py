"""`kafkaesque pipeline`: the ready-made jobs on Spark."""

import dataclasses
import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from kafkaesque.cli.main import Group
from kafkaesque.cli.options import bootstrap_option, json_option
from kafkaesque.cli.output import Output, Table, counted
from kafkaesque.client.admin import Admin
from kafkaesque.clock import SystemClock
from kafkaesque.errors import KafkaesqueError, TopicExists
from kafkaesque.spark.errors import SparkMissing
from kafkaesque.spark.pipelines.catalog import PIPELINES
from kafkaesque.spark.pipelines.messages import Message
from kafkaesque.spark.pipelines.settings import PipelineSettings, parse_settings

_PARTITIONS = 4
_FLUSH_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.1
_WAITING_MAX = 50_000
"""Records that wait to be sent: fewer than the producer's queue holds."""
_MILLISECONDS_PER_MESSAGE = 2_000
"""Average time between generated events."""

_NAME = click.Choice(list(PIPELINES))
_WITH_DATA = click.Choice([one.name for one in PIPELINES.values() if one.generate is not None])

_set_option = click.option(
    "--set",
    "words",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set one of its settings; `pipeline settings NAME` lists them. May be repeated.",
)


@click.group(cls=Group)
def pipeline() -> None:
    """Run ready-made jobs on Spark, and generate test data for them."""


@pipeline.command("list", epilog="Example: kafkaesque pipeline list")
@json_option
def list_(is_json: bool) -> None:  # noqa: FBT001 - passed by click
    """List the pipelines."""
    rows = [(one.name, one.topic, one.summary) for one in PIPELINES.values()]
    Output(is_json=is_json).table(
        Table(kind="pipeline", columns=("name", "topic", "what it does"), rows=rows)
    )


@pipeline.command(epilog="Example: kafkaesque pipeline settings metrics")
@click.argument("name", type=_NAME)
@json_option
def settings(name: str, is_json: bool) -> None:  # noqa: FBT001 - passed by click
    """List the settings of a pipeline, with their defaults."""
    default = PIPELINES[name].settings()
    rows = [(one.name, str(getattr(default, one.name))) for one in dataclasses.fields(default)]
    Output(is_json=is_json).table(Table(kind="setting", columns=("name", "default"), rows=rows))


@pipeline.command(epilog="Example: kafkaesque pipeline generate activity --count 20000")
@click.argument("name", type=_WITH_DATA)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Number of records.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of the data.")
@_set_option
@bootstrap_option
@json_option
def generate(
    name: str,
    count: int,
    seed: int,
    words: Sequence[str],
    bootstrap: str,
    is_json: bool,  # noqa: FBT001 - passed by click
) -> None:
    """Fill a pipeline's topic with generated records; creates it if it does not exist.

    A pipeline that reads several topics also gets records for the others.
    """
    chosen = PIPELINES[name]
    assert chosen.generate is not None, "only those with data can be chosen"
    given = parse_settings(chosen.settings, words)
    _create_topics(bootstrap, given)
    start_ms = SystemClock().now_ms() - count * _MILLISECONDS_PER_MESSAGE
    sent = _send(chosen.generate(seed, count, start_ms), given, bootstrap)
    Output(is_json=is_json).done(
        f"sent {counted(sent, 'record')} to topic {given.topic}", topic=given.topic, records=sent
    )


@pipeline.command(epilog="Example: kafkaesque pipeline run activity --once")
@click.argument("name", type=_NAME)
@click.option("--once", "is_once", is_flag=True, help="Stop at the end of the topic.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where tables and checkpoints are kept  [default: pipelines/NAME]",
)
@click.option("--master", default="local[2]", show_default=True, help="Where Spark runs.")
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65_535),
    help="Serve metrics of its queries for Prometheus, on this local port.",
)
@_set_option
@bootstrap_option
def run(
    name: str,
    is_once: bool,  # noqa: FBT001 - passed by click
    folder: Path | None,
    master: str,
    metrics_port: int | None,
    words: Sequence[str],
    bootstrap: str,
) -> None:
    """Run a pipeline until it is interrupted, or with --once to the end of its topic."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkMissing("Spark is not installed: install kafkaesque-broker with the extra spark")
    from kafkaesque.spark.pipelines.blocks import Place
    from kafkaesque.spark.session import session

    module = importlib.import_module(PIPELINES[name].module)
    given = parse_settings(PIPELINES[name].settings, words)
    place = Place(
        bootstrap=bootstrap, folder=(folder or Path("pipelines") / name).absolute(), is_once=is_once
    )
    _create_topics(bootstrap, given)
    spark = session(f"kafkaesque-{name}", master=master, settings=_QUIET)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        _watch(module.jobs(spark, place, given), metrics_port, is_once=is_once)
    finally:
        spark.stop()
    click.echo(f"tables: {place.folder / 'tables'}")


_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2"}


def _watch(jobs: Sequence[Any], metrics_port: int | None, *, is_once: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    from kafkaesque.spark.pipelines import query_runner
    from kafkaesque.spark.pipelines.exporter import Exporter

    console, exporter = Console(), Exporter()
    if metrics_port is not None:
        exporter.serve(metrics_port)
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(fares: list[query_runner.Fare]) -> None:
            live.update(query_runner.table(fares), refresh=True)
            exporter.tell(fares)

        fares = query_runner.run(jobs, show, is_in_turn=is_once)
    console.print(query_runner.table(fares))


def _create_topics(bootstrap: str, given: PipelineSettings) -> None:
    with Admin(bootstrap) as admin:
        for topic in given.topics:
            compacted = {"cleanup.policy": "compact"} if topic in given.compacted else {}
            try:
                admin.topics.create(topic, partitions=_PARTITIONS, settings=compacted)
            except TopicExists:
                continue


def _send(messages: Iterable[Message[Any]], given: PipelineSettings, bootstrap: str) -> int:
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
        }
    )
    sent = 0
    for message in messages:
        topic = getattr(given, message.to)
        # Ends: each pass waits until something was delivered or timed out.
        while len(producer) >= _WAITING_MAX:
            producer.poll(_POLL_SECONDS)
        producer.produce(topic, message.value, message.key, on_delivery=note)
        producer.poll(0)
        sent += 1
    unsent = producer.flush(_FLUSH_SECONDS_MAX)
    if failures or unsent:
        reason = failures[0] if failures else "no acknowledgement arrived in time"
        raise KafkaesqueError(f"not written: {counted(len(failures) + unsent, 'record')}: {reason}")
    return sent
