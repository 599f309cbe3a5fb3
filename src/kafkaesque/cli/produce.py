"""`kafkaesque produce`: lines, or JSON records, to a topic."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from kafkaesque.callbacks import ignore
from kafkaesque.cli.main import FAILED, INTERRUPTED, UNKNOWN
from kafkaesque.cli.options import bootstrap_option, json_option, pairs
from kafkaesque.cli.output import Output, counted
from kafkaesque.cli.record_text import InvalidRecord, Outgoing, read_json, read_line
from kafkaesque.client.admin import Admin
from kafkaesque.errors import KafkaesqueError
from kafkaesque.wire.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

LINE_BYTES_MAX = 64 << 20
"""The longest line: above the largest batch that a topic can be set to take."""

_QUEUE_WAIT_SECONDS = 0.1
_SHOWN_EVERY_SECONDS = 0.2
"""How often the terminal's count is updated while the last records are awaited."""
_SHOWN_REASONS_MAX = 5
_IN_DOUBT = frozenset(
    {
        "_MSG_TIMED_OUT",
        "_PURGE_INFLIGHT",
        "_TIMED_OUT",
        "_TRANSPORT",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_LEADER_FOR_PARTITION",
        "REQUEST_TIMED_OUT",
    }
)
"""What librdkafka reports when a record may or may not have been written."""


class Tally:
    """Outcomes of the records so far."""

    def __init__(self) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.failed: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def delivered(self, error: "KafkaError | None", _: object) -> None:
        """Handle librdkafka's report of one record."""
        if error is None:
            self.acknowledged += 1
        elif error.name() in _IN_DOUBT:
            self.unknown[error.str()] += 1
        else:
            self.failed[error.str()] += 1

    @property
    def exit_code(self) -> int:
        """Unknown outweighs failed, because it needs checking."""
        if self.unknown or self.sent > self.settled:
            return UNKNOWN
        return FAILED if self.failed else 0

    @property
    def settled(self) -> int:
        """Records whose report has arrived."""
        return self.acknowledged + self.failed.total() + self.unknown.total()


@click.command(epilog="Example: printf 'one\\ntwo\\n' | kafkaesque produce letters")
@click.argument("topic")
@click.option(
    "--file", type=click.File("rb"), default="-", help="Read this file.  [default: stdin]"
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines of text, or the output of `consume --format json` prints.",
)
@click.option("--key-separator", help="Each line is a key, this, and a value.")
@click.option("--key", help="The key of every record.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A header of every record; may be repeated.",
)
@click.option("--partition", type=click.IntRange(min=0), help="Send all to this partition.")
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Compression of batches.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Give up a record after this many seconds.",
)
@bootstrap_option
@json_option
def produce(  # noqa: PLR0913 - the command's options
    *,
    topic: str,
    file: IO[bytes],
    form: str,
    key_separator: str | None,
    key: str | None,
    headers: Sequence[tuple[str, str]],
    partition: int | None,
    compression: str,
    timeout_seconds: float,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Send the lines of a file, or of stdin, to a topic.

    Every record is acknowledged by all replicas that must have it. Exit code 3 means that some may
    or may not have been written.
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("give either --key or --key-separator, not both")
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    if form == "json" and key_separator is not None:
        raise click.UsageError("--key-separator needs --format text")
    # To the system, arguments are bytes that need not be text.
    given = [(name, os.fsencode(value)) for name, value in headers]
    same_key = None if key is None else os.fsencode(key)
    separator = None if key_separator is None else os.fsencode(key_separator)

    def read(line: bytes) -> Outgoing:
        if form == "json":
            return read_json(line, same_key, given)
        return read_line(line, separator, same_key, given)

    producer = _producer(bootstrap, compression, timeout_seconds)
    tally = Tally()
    records = map(read, _lines(file))
    typed = file.isatty()
    code = _send(producer, topic, partition, records, tally, timeout_seconds, is_typed=typed)
    for reason, count in (tally.failed + tally.unknown).most_common(_SHOWN_REASONS_MAX):
        click.echo(f"kafkaesque: {counted(count, 'record')}: {reason}", err=True)
    unknown = tally.unknown.total() + tally.sent - tally.settled
    Output(is_json=is_json).done(
        f"acknowledged: {tally.acknowledged}, failed: {tally.failed.total()}, unknown: {unknown}",
        topic=topic,
        acknowledged=tally.acknowledged,
        failed=tally.failed.total(),
        unknown=unknown,
    )
    return code or tally.exit_code


def _producer(bootstrap: str, compression: str, timeout_seconds: float) -> "Producer":
    # Reports an unreachable broker at once and in one sentence: librdkafka would keep trying.
    with Admin(bootstrap) as admin:
        is_idempotent = admin.serves(InitProducerIdRequest)
    from confluent_kafka import Producer

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "kafkaesque",
        "acks": "all",
        "enable.idempotence": is_idempotent,
        "compression.type": compression,
        "message.timeout.ms": int(timeout_seconds * 1000),
        "message.max.bytes": LINE_BYTES_MAX,
        "log_level": 0,
        "error_cb": ignore,  # of connections: what matters comes with the reports
    }
    return Producer(settings)


def _send(
    producer: "Producer",
    topic: str,
    partition: int | None,
    records: Iterator[Outgoing],
    tally: Tally,
    timeout_seconds: float,
    *,
    is_typed: bool,
) -> int:
    """Send all records; return an exit code if it stopped early."""
    code = 0
    try:
        with _progress(tally, is_typed=is_typed) as show:
            for record in records:
                _queue(producer, topic, partition, record, tally)
                show()
            # Records time out on their own; this limit is only in case librdkafka fails to.
            flush(producer, 2 * timeout_seconds, show)
    except KeyboardInterrupt:
        producer.flush(timeout_seconds)
        code = INTERRUPTED
    except KafkaesqueError as error:  # an invalid line: records before it were sent
        click.echo(f"kafkaesque: {error}", err=True)
        producer.flush(2 * timeout_seconds)
        code = FAILED
    return code


def flush(producer: "Producer", seconds: float, show: Callable[[], None]) -> None:
    """Wait until all is sent, at most `seconds`, and show the progress meanwhile."""
    for _ in range(int(seconds / _SHOWN_EVERY_SECONDS) + 1):
        left = producer.flush(_SHOWN_EVERY_SECONDS)
        show()
        if not left:
            return


def _queue(
    producer: "Producer", topic: str, partition: int | None, record: Outgoing, tally: Tally
) -> None:
    from confluent_kafka import KafkaException

    optional: dict[str, Any] = {} if partition is None else {"partition": partition}
    if record.timestamp_ms is not None:
        optional["timestamp"] = record.timestamp_ms
    headers: list[tuple[str, str | bytes | None]] = list(record.headers)
    tally.sent += 1
    # Ends: queued records are sent or time out, which makes room.
    while True:
        try:
            producer.produce(
                topic,
                record.value,
                record.key,
                headers=headers,
                on_delivery=tally.delivered,
                **optional,
            )
        except BufferError:
            producer.poll(_QUEUE_WAIT_SECONDS)
            continue
        except KafkaException as error:
            tally.delivered(error.args[0], None)
        producer.poll(0)
        return


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines without their line ends; the last one may lack one."""
    while line := file.readline(LINE_BYTES_MAX + 1):  # ends with the input
        if len(line) > LINE_BYTES_MAX:
            raise InvalidRecord(f"a line is longer than {LINE_BYTES_MAX} bytes")
        yield line.removesuffix(b"\n").removesuffix(b"\r")


@contextmanager
def _progress(tally: Tally, *, is_typed: bool) -> Iterator[Callable[[], None]]:
    """Show the progress on a terminal, unless the lines are typed on it."""
    if not sys.stderr.isatty() or is_typed:
        yield ignore
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    column = TextColumn("{task.completed:,.0f} of {task.total:,.0f} records acknowledged")
    with Progress(column, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=0)
        yield lambda: bar.update(task, total=tally.sent, completed=tally.acknowledged)
