"""`kafkaesque transaction`: transactions, their states, and how to end them by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from kafkaesque.cli.main import Group
from kafkaesque.cli.options import NOT_DONE, bootstrap_option, json_option, yes_option
from kafkaesque.cli.output import Output, Table
from kafkaesque.client.admin import Admin
from kafkaesque.client.errors import Refused
from kafkaesque.client.transactions import PREPARED, PreparedInfo, TransactionInfo
from kafkaesque.clock import SystemClock
from kafkaesque.types import NodeId

STATES = (
    "Empty",
    "Ongoing",
    "Prepared",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
)
OPEN = ("Ongoing", "Prepared")


@click.group(cls=Group)
def transaction() -> None:
    """Inspect transactions and end stuck ones."""


@transaction.command("list", epilog="Example: kafkaesque transaction list --state Ongoing")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    help="Only those in this state; may be repeated.",
)
@bootstrap_option
@json_option
def list_(*, states: Sequence[str], bootstrap: str, is_json: bool) -> None:
    """List the transactional ids.

    For each its state and its producer's id; for a prepared one also its owner, which must end it,
    and for how many seconds it has waited.
    """
    output = Output(is_json=is_json)
    missing: set[NodeId] = set()
    with Admin(bootstrap) as admin:
        found = admin.transactions.list(states, missing)
        prepared = admin.transactions.prepared(missing=missing)
    rows = [(*row, *_waits(prepared.get(row[0]))) for row in found]
    columns = ("transaction", "state", "producer", "owner", "waits s")
    output.table(Table(kind="transaction", columns=columns, rows=rows))
    output.missing(missing)


@transaction.command(epilog="Example: kafkaesque transaction describe billing-0")
@click.argument("transactional_id", metavar="ID")
@bootstrap_option
@json_option
def describe(*, transactional_id: str, bootstrap: str, is_json: bool) -> None:
    """Show one transaction and its partitions."""
    output = Output(is_json=is_json)
    missing: set[NodeId] = set()
    with Admin(bootstrap) as admin:
        info = admin.transactions.describe(transactional_id)
        prepared = admin.transactions.prepared(transactional_id, missing)
    output.tables(_head(info, prepared.get(transactional_id)), [_partitions(info)])
    if info.state == PREPARED and transactional_id not in prepared:
        output.missing(missing)


@transaction.command(epilog="Example: kafkaesque transaction commit billing-0 --yes")
@click.argument("transactional_id", metavar="ID")
@yes_option
@bootstrap_option
@json_option
def commit(*, transactional_id: str, is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Commit an open transaction on behalf of its producer.

    The producer is fenced: its requests are refused until it initialises again. Without --yes
    nothing is done, and it only shows what would be committed.
    """
    return _end(transactional_id, "committed", bootstrap, is_sure=is_sure, is_json=is_json)


@transaction.command(epilog="Example: kafkaesque transaction abort billing-0 --yes")
@click.argument("transactional_id", metavar="ID")
@yes_option
@bootstrap_option
@json_option
def abort(*, transactional_id: str, is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Abort an open transaction on behalf of its producer.

    The producer is fenced: its requests are refused until it initialises again. Without --yes
    nothing is done, and it only shows what would be aborted.
    """
    return _end(transactional_id, "aborted", bootstrap, is_sure=is_sure, is_json=is_json)


def _end(transactional_id: str, how: str, bootstrap: str, *, is_sure: bool, is_json: bool) -> int:
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        info = admin.transactions.describe(transactional_id)
        if info.state not in OPEN:
            raise Refused(f"{transactional_id} has no open transaction: {info.state}", info.state)
        if not is_sure:
            prepared = admin.transactions.prepared(transactional_id)
            output.tables(_head(info, prepared.get(transactional_id)), [_partitions(info)])
            output.not_done(f"the transaction of {transactional_id} would be {how}")
            return NOT_DONE
        if how == "committed":
            admin.transactions.commit(info)
        else:
            admin.transactions.abort(info)
    sentence = f"the transaction of {transactional_id} was {how}"
    output.done(sentence, transaction=transactional_id, ended=how)
    return 0


def _waits(prepared: PreparedInfo | None) -> tuple[str | None, int | None]:
    """Return the owner of a prepared transaction, and for how many seconds it has waited."""
    if prepared is None:
        return None, None
    return prepared.owner, max(SystemClock().now_ms() - prepared.prepared_ms, 0) // 1000


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")


def _head(info: TransactionInfo, prepared: PreparedInfo | None) -> dict[str, object]:
    owner, waits_seconds = _waits(prepared)
    limit = None if prepared is None else _moment(prepared.prepared_ms + prepared.limit_ms)
    return {
        "transaction": info.transactional_id,
        "state": info.state,
        "producer": info.producer_id,
        "epoch": info.epoch,
        "time-out ms": info.timeout_ms,
        "began": _moment(info.began_ms) if info.began_ms >= 0 else None,
        "owner": owner,
        "waits s": waits_seconds,
        "aborted at": limit,
    }


def _partitions(info: TransactionInfo) -> Table:
    rows = sorted(info.places)
    return Table(kind="partition", columns=("topic", "partition"), rows=rows)
