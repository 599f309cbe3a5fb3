"""`kafkaesque log repair` without a partition: for a lone broker that has lost its journal."""

import click

from kafkaesque.broker.storage.salvage import has_journal, survey, write_journal
from kafkaesque.cli.options import NOT_DONE
from kafkaesque.cli.output import Output, Table, counted
from kafkaesque.config import LogConfig
from kafkaesque.log.disk import Disk


def repair_journal(disk: Disk, output: Output, *, is_sure: bool) -> int:
    """Show what the segments hold of each log, and with `is_sure` rebuild the journal from it."""
    config = LogConfig()
    if has_journal(disk, config):
        click.echo("the journal is whole; to repair a partition, name it", err=True)
        return 0
    found = survey(disk)
    rows = [(one.group, one.start, one.end, one.last_term, one.bad_bytes) for one in found.logs]
    columns = ("partition", "start", "end", "term", "unreadable_bytes")
    output.table(Table(kind="log", columns=columns, rows=rows))
    lost = sum(one.bad_bytes for one in found.logs)
    told = (
        f"a journal of {counted(len(rows), 'log')} continuing in term {found.term}, to be made "
        f"from the segments; {counted(lost, 'byte')} of them are unreadable, votes and earlier "
        "terms are forgotten, and deleted records that still lie in a first segment come back"
    )
    if not is_sure:
        output.not_done(told)
        return NOT_DONE
    write_journal(disk, config, found)
    output.done(
        f"{counted(len(rows), 'log')} continue in term {found.term}",
        logs=len(rows),
        term=found.term,
    )
    return 0
