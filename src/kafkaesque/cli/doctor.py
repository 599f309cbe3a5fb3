"""`kafkaesque doctor`: what is wrong with a cluster, and the command that fixes it."""

import time

import click

from kafkaesque.cli.main import FAILED
from kafkaesque.cli.options import bootstrap_option, json_option
from kafkaesque.cli.output import Output, Table, counted
from kafkaesque.client.admin import Admin
from kafkaesque.client.findings import findings
from kafkaesque.client.overview import look

SECOND_LOOK_S = 3.0
"""Moves are read twice, this many seconds apart, to see whether they make progress."""


@click.command(epilog="Example: kafkaesque doctor --bootstrap localhost:9092")
@bootstrap_option
@json_option
def doctor(*, bootstrap: str, is_json: bool) -> int:
    """Report what is wrong with a cluster, and how to fix it.

    One line per finding, worst first. The exit code is 0 if there is none, else 1.
    """
    with Admin(bootstrap) as admin:
        seen = look(admin)
        before = None
        if seen.moves:
            time.sleep(SECOND_LOOK_S)
            before, seen = seen, look(admin)
    found = findings(seen, before)
    if is_json:
        rows = [(one.kind.value, one.text, one.command) for one in found]
        table = Table(kind="finding", columns=("kind", "text", "command"), rows=rows)
        Output(is_json=True).table(table)
    for one in found if not is_json else ():
        click.echo(f"{one.text}  →  {one.command}")
    if not found and not is_json:
        brokers, topics = counted(len(seen.brokers), "broker"), counted(len(seen.topics), "topic")
        click.echo(f"healthy: {brokers}, {topics}")
    return FAILED if found else 0
