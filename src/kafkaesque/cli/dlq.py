"""`kafkaesque dlq`: dead letters listed, shown and sent back."""

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from kafkaesque.cli.main import Group
from kafkaesque.cli.options import NOT_DONE, bootstrap_option, json_option, yes_option
from kafkaesque.cli.output import Output, Table
from kafkaesque.cli.record_text import json_value
from kafkaesque.client.admin import Admin
from kafkaesque.errors import OutcomeUnknown, Undelivered

if TYPE_CHECKING:
    from kafkaesque.patterns.dead_letter import DeadLetter
    from kafkaesque.patterns.dead_letter_redrive import Redriven, Where
    from kafkaesque.patterns.letters import Letter
    from kafkaesque.patterns.message import Message

_SHOWN_MAX = 20
_COLUMNS: tuple[str, ...] = (
    *("at", "origin", "error", "reason", "attempts", "redrives", "failed at", "digest"),
)
_PLACE = re.compile(r"\d{1,9}:\d{1,18}")


@click.group(cls=Group)
def dlq() -> None:
    """Inspect dead letters and send them back."""


@dlq.command("list", epilog="Example: kafkaesque dlq list")
@bootstrap_option
@json_option
def list_(*, bootstrap: str, is_json: bool) -> None:
    """List the dead-letter topics.

    For each, how many letters it holds, and how many of them were not sent back.
    """
    _reach(bootstrap)
    from kafkaesque.patterns.letters import dead_letter_topics, read_all, read_marks
    from kafkaesque.patterns.marks import Marks

    none = Marks()
    rows = []
    for topic in dead_letter_topics(bootstrap):
        marks = read_marks(bootstrap, topic)
        places = [(one.partition, one.offset) for one in read_all(bootstrap, topic)]
        waiting = sum(1 for at, offset in places if offset not in marks.get(at, none))
        rows.append((topic, len(places), waiting))
    Output(is_json=is_json).table(
        Table(kind="topic", columns=("topic", "letters", "waiting"), rows=rows)
    )


@dlq.command(epilog="Example: kafkaesque dlq show orders.orders.dlq --error ValueError")
@click.argument("topic")
@click.option("--error", help="Only those that failed with this class of error.")
@click.option("--at", help="Only this letter, as PARTITION:OFFSET.", metavar="PARTITION:OFFSET")
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=_SHOWN_MAX,
    show_default=True,
    help="Show at most this many.",
)
@bootstrap_option
@json_option
def show(
    *, topic: str, error: str | None, at: str | None, count: int, bootstrap: str, is_json: bool
) -> None:
    """Show the letters that were not sent back.

    With --json also their keys, values and headers.
    """
    wanted = _where(error, at)
    _reach(bootstrap)
    from kafkaesque.patterns.letters import open_letters, read_marks

    letters: list[Letter] = []
    for letter in open_letters(bootstrap, topic, read_marks(bootstrap, topic)):
        if wanted(letter.message, letter.dead):
            letters.append(letter)
            if len(letters) >= count:
                break
    columns = _COLUMNS
    rows = [_row(letter) for letter in letters]
    if is_json:
        columns = (*columns, "key", "value", "headers")
        rows = [(*row, *_content(one.message)) for row, one in zip(rows, letters, strict=True)]
    Output(is_json=is_json).table(Table(kind="letter", columns=columns, rows=rows))


@dlq.command(epilog="Example: kafkaesque dlq redrive orders.orders.dlq --rate 100 --yes")
@click.argument("topic")
@click.option("--to", "target", help="Send all to this topic.  [default: each to its origin]")
@click.option("--error", help="Only those that failed with this class of error.")
@click.option("--at", help="Only this letter, as PARTITION:OFFSET.", metavar="PARTITION:OFFSET")
@click.option("--count", type=click.IntRange(min=1), help="Send at most this many.")
@click.option("--rate", type=click.FloatRange(min=0.001), help="At most this many per second.")
@click.option(
    "--redrives-max",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Leave letters that came back this often.",
)
@yes_option
@bootstrap_option
@json_option
def redrive(  # noqa: PLR0913 - the command's options
    *,
    topic: str,
    target: str | None,
    error: str | None,
    at: str | None,
    count: int | None,
    rate: float | None,
    redrives_max: int,
    is_sure: bool,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Send dead letters back to where they came from.

    Without --yes it sends nothing, and only shows how many it would send. The letters stay in the
    topic, and those that were sent back are not sent again. Exit code 3 means that the last ones
    may or may not have been sent.
    """
    where = _where(error, at)
    _reach(bootstrap)
    from kafkaesque.patterns.dead_letter_redrive import Redriver, RedriveSettings

    settings = RedriveSettings(
        to=target,
        where=where,
        dry_run=not is_sure,
        per_second_max=rate,
        redrives_max=redrives_max,
        count_max=count,
    )
    try:
        done = Redriver(bootstrap, topic, settings).run(_progress)
    except Undelivered as problem:
        raise OutcomeUnknown(str(problem)) from problem
    left = done.filtered + done.looping + done.unknown_origin
    verb = "sent back" if is_sure else "to send back" if done.moved else "nothing to send back"
    output = Output(is_json=is_json)
    output.done(
        f"{verb}: {done.moved}, left: {left} "
        f"(not selected {done.filtered}, came back too often {done.looping}, "
        f"of unknown origin {done.unknown_origin})",
        topic=topic,
        is_done=is_sure,
        moved=done.moved,
        filtered=done.filtered,
        looping=done.looping,
        unknown_origin=done.unknown_origin,
    )
    if is_sure or not done.moved:
        return 0
    output.not_done(f"{done.moved} to send back")
    return NOT_DONE


def _where(error: str | None, at: str | None) -> "Where":
    """Return a filter for the selected letters."""
    if at is not None and not _PLACE.fullmatch(at):
        raise click.UsageError(f"{at!r} is not of the form PARTITION:OFFSET")

    def wanted(message: "Message", dead: "DeadLetter | None") -> bool:
        if error is not None and (dead is None or dead.failure.error != error):
            return False
        return at is None or at == f"{message.partition}:{message.offset}"

    return wanted


def _reach(bootstrap: str) -> None:
    # Reports an unreachable broker at once and in one sentence: librdkafka would keep trying.
    with Admin(bootstrap) as admin:
        admin.topics.list()


def _row(letter: "Letter") -> tuple[object, ...]:
    at = f"{letter.message.partition}:{letter.message.offset}"
    dead = letter.dead
    if dead is None:
        return (at, None, None, "not a dead letter's headers", None, None, None, None)
    origin = f"{dead.origin.topic}:{dead.origin.partition}:{dead.origin.offset}"
    failure = dead.failure
    numbers = (dead.attempts, dead.redrives)
    failed_at = _moment(dead.failed_at_ms)
    return (at, origin, failure.error, failure.reason, *numbers, failed_at, failure.digest)


def _moment(time_ms: int) -> str | None:
    """Return a readable time; None if a foreign header holds an impossible one."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # depends on the platform
        return None


def _content(message: "Message") -> Sequence[object]:
    headers = [[name, json_value(value)] for name, value in message.headers]
    return (json_value(message.key), json_value(message.value), headers)


def _progress(state: "Redriven") -> None:
    """Show the progress on a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\rseen {state.seen:,}, sent {state.moved:,} ", nl=False, err=True)
