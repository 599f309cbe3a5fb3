"""`kafkaesque broker`: show and change the settings and log levels of brokers."""

from collections.abc import Mapping, Sequence

import click

from kafkaesque.cli.main import Group
from kafkaesque.cli.options import NOT_DONE, bootstrap_option, check_changes, json_option, pairs
from kafkaesque.cli.output import Output, Table
from kafkaesque.client.admin import Admin
from kafkaesque.client.settings import ALL_BROKERS, Kind, subject
from kafkaesque.types import NodeId

_NODE = click.IntRange(min=1)
_DEFAULT = 5
_SOURCES: Mapping[int, str] = {
    2: "broker",
    3: "all brokers",
    4: "configuration",
    _DEFAULT: "default",
}
"""Where a value comes from, by Kafka's number for it."""


@click.group(cls=Group)
def broker() -> None:
    """See and change settings of brokers while they run."""


@broker.command(epilog="Example: kafkaesque broker describe 1")
@click.argument("node", type=_NODE, required=False)
@click.option("--all", "with_all", is_flag=True, help="Also settings at their defaults.")
@bootstrap_option
@json_option
def describe(*, node: NodeId | None, with_all: bool, bootstrap: str, is_json: bool) -> None:
    """Show the settings of a broker, or those set for all brokers.

    Each row says where the value comes from (set at run time for the broker or for all brokers,
    its configuration, or the default) and whether it can be changed while the broker runs.
    """
    with Admin(bootstrap) as admin:
        found = admin.settings.list(Kind.BROKER, _name(node))
    rows = [
        (
            one.name,
            "(hidden)" if one.value is None else one.value,
            _SOURCES.get(one.source, "other"),
            not one.is_read_only,
        )
        for one in found
        if with_all or one.source != _DEFAULT
    ]
    columns = ("name", "value", "source", "changeable")
    Output(is_json=is_json).table(Table(kind="setting", columns=columns, rows=rows))


@broker.command(epilog="Example: kafkaesque broker alter --set log.retention.ms=3600000")
@click.argument("node", type=_NODE, required=False)
@click.option(
    "--set",
    "put",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Change a setting; may be repeated.",
)
@click.option(
    "--unset", "drop", multiple=True, metavar="NAME", help="Remove a setting; may be repeated."
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only check whether it is possible.")
@bootstrap_option
@json_option
def alter(
    *,
    node: NodeId | None,
    put: Sequence[tuple[str, str]],
    drop: Sequence[str],
    is_dry_run: bool,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Change settings of a broker, or of all brokers if none is named.

    The change takes effect at once and survives restarts. A value set for one broker wins over the
    value set for all.
    """
    check_changes(put, drop)
    with Admin(bootstrap) as admin:
        admin.settings.alter(Kind.BROKER, _name(node), dict(put), drop, is_dry_run=is_dry_run)
    who = subject(Kind.BROKER, _name(node))
    sentence = f"settings of {who} could be changed" if is_dry_run else f"{who}: settings changed"
    Output(is_json=is_json).done(sentence, broker=node, changed=not is_dry_run)
    return NOT_DONE if is_dry_run else 0


@broker.command(epilog="Example: kafkaesque broker log 1 --set kafkaesque.net.links=DEBUG")
@click.argument("node", type=_NODE)
@click.option(
    "--set",
    "put",
    multiple=True,
    callback=pairs,
    metavar="LOGGER=LEVEL",
    help="Change a level; may be repeated.",
)
@click.option(
    "--unset",
    "drop",
    multiple=True,
    metavar="LOGGER",
    help="Inherit the level of its parent; may be repeated.",
)
@bootstrap_option
@json_option
def log(
    *,
    node: NodeId,
    put: Sequence[tuple[str, str]],
    drop: Sequence[str],
    bootstrap: str,
    is_json: bool,
) -> None:
    """Show or change what a broker logs, until it restarts.

    Levels are TRACE, DEBUG, INFO, WARN, ERROR and FATAL; a logger is a module.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        if put or drop:
            check_changes(put, drop)
            admin.settings.alter(Kind.BROKER_LOGGER, str(node), dict(put), drop)
            output.done(f"broker {node}: levels changed", broker=node, changed=True)
            return
        found = admin.settings.list(Kind.BROKER_LOGGER, str(node))
    rows = [(one.name, one.value) for one in found]
    output.table(Table(kind="logger", columns=("logger", "level"), rows=rows))


def _name(node: NodeId | None) -> str:
    return ALL_BROKERS if node is None else str(node)
