"""`kafkaesque bench`: how fast brokers accept and deliver messages, and with what latency."""

import click

from kafkaesque.cli.bench_runs import MARK_BYTES, PERCENTS, Load, Outcome, follow, read, send
from kafkaesque.cli.main import Group
from kafkaesque.cli.options import F, bootstrap_option, json_option
from kafkaesque.cli.output import Output
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import EARLIEST, LATEST, Place
from kafkaesque.types import Offset

_MEGABYTE = 1e6


@click.group(cls=Group)
def bench() -> None:
    """Measure brokers: sending, reading, and end-to-end latency.

    Works with any broker that speaks Kafka's protocol. Everything runs in one Python process, which
    is often slower than the broker: start several to find a broker's limit. The messages stay in
    the topic, so use a dedicated one.
    """


def _load_options(command: F) -> F:
    """Add the options that describe what is sent."""
    for option in (
        click.option(
            "--acks",
            type=click.Choice(["0", "1", "all"]),
            default="all",
            show_default=True,
            help="Which replicas must acknowledge a message.",
        ),
        click.option(
            "--compression",
            type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
            default="none",
            show_default=True,
            help="Compression of batches.",
        ),
        click.option(
            "--seconds",
            type=click.FloatRange(min=0.1, max=86_400),
            default=10.0,
            show_default=True,
            help="How long to send.",
        ),
    ):
        command = option(command)
    return command


def _size_option(least: int) -> click.IntRange:
    return click.IntRange(min=least, max=64 << 20)


@bench.command(epilog="Example: kafkaesque bench produce trial --size 1024 --seconds 5")
@click.argument("topic")
@click.option(
    "--size", type=_size_option(0), default=100, show_default=True, help="Bytes of each message."
)
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many messages.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0.1),
    help="Messages per second; also shows acknowledgement latency.",
)
@click.option("--batch-bytes", type=click.IntRange(min=1), help="The largest batch.")
@click.option("--linger-ms", type=click.IntRange(min=0), help="How long a batch waits to fill.")
@_load_options
@bootstrap_option
@json_option
def produce(  # noqa: PLR0913 - the command's options
    *,
    topic: str,
    size: int,
    count: int | None,
    rate: float | None,
    batch_bytes: int | None,
    linger_ms: int | None,
    acks: str,
    compression: str,
    seconds: float,
    bootstrap: str,
    is_json: bool,
) -> None:
    """Send messages as fast as possible, or at a fixed rate."""
    _places(bootstrap, topic)
    given = {"batch.size": batch_bytes, "linger.ms": linger_ms}
    settings = {name: value for name, value in given.items() if value is not None}
    load = Load(
        topic=topic,
        size=size,
        seconds=seconds,
        count=count,
        rate=rate,
        settings={"acks": acks, "compression.type": compression, **settings},
    )
    _show("sent", send(bootstrap, load), is_json=is_json)


@bench.command(epilog="Example: kafkaesque bench consume trial --count 1000000")
@click.argument("topic")
@click.option("--count", type=click.IntRange(min=1), help="Stop after about this many messages.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1, max=86_400),
    default=60.0,
    show_default=True,
    help="Maximum time to read.",
)
@bootstrap_option
@json_option
def consume(
    *, topic: str, count: int | None, seconds: float, bootstrap: str, is_json: bool
) -> None:
    """Read what a topic holds now, from the beginning."""
    starts, ends = _places(bootstrap, topic)
    if all(starts[place] >= ends[place] for place in starts):
        raise click.ClickException(f"topic {topic} holds no messages")
    found = read(bootstrap, starts, ends, seconds=seconds, count=count)
    _show("read", found, is_json=is_json)


@bench.command(epilog="Example: kafkaesque bench latency trial --rate 1000")
@click.argument("topic")
@click.option(
    "--rate",
    type=click.FloatRange(min=0.1),
    default=1000.0,
    show_default=True,
    help="Messages per second.",
)
@click.option(
    "--size",
    type=_size_option(MARK_BYTES),
    default=100,
    show_default=True,
    help="Bytes of each message.",
)
@_load_options
@bootstrap_option
@json_option
def latency(  # noqa: PLR0913 - the command's options
    *,
    topic: str,
    rate: float,
    size: int,
    acks: str,
    compression: str,
    seconds: float,
    bootstrap: str,
    is_json: bool,
) -> None:
    """Send at a fixed rate and show how late messages arrive at a consumer.

    A latency counts from when a message was due, so a stall counts for every message that it
    delayed.
    """
    _, ends = _places(bootstrap, topic)
    settings = {"acks": acks, "compression.type": compression}
    load = Load(topic=topic, size=size, seconds=seconds, rate=rate, settings=settings)
    _show("passed on", follow(bootstrap, load, ends), is_json=is_json)


def _places(bootstrap: str, topic: str) -> tuple[dict[Place, Offset], dict[Place, Offset]]:
    """Return where the topic's partitions start and end; raises UnknownTopic, Unreachable."""
    with Admin(bootstrap) as admin:
        places = admin.topics.describe(topic).places
        return admin.topics.offsets(places, EARLIEST), admin.topics.offsets(places, LATEST)


def _show(done: str, outcome: Outcome, *, is_json: bool) -> None:
    lines = [
        f"{done} {outcome.messages:,} messages in {outcome.seconds:.2f} s: "
        f"{outcome.messages / outcome.seconds:,.0f} messages/s, "
        f"{outcome.message_bytes / outcome.seconds / _MEGABYTE:,.1f} MB/s"
    ]
    if outcome.latencies is not None and outcome.latencies.count:
        values = (
            f"{name} {outcome.latencies.percentile(percent) / 1e6:,.2f}"
            for name, percent in PERCENTS.items()
        )
        lines.append("latency in ms: " + ", ".join(values))
    Output(is_json=is_json).done("\n".join(lines), **outcome.facts())
