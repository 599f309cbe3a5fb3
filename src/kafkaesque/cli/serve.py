"""`kafkaesque serve`: one broker."""

import logging
import os
from dataclasses import replace
from pathlib import Path

import click

from kafkaesque.client.sentences import named_brokers
from kafkaesque.node import Node, NodeSettings, run
from kafkaesque.node import serve as serve_node
from kafkaesque.server.edge.event_log import set_up
from kafkaesque.server.requests.addresses import is_local
from kafkaesque.server_config import LogFormat, ServerConfig
from kafkaesque.settings import Settings, Value, load

_DEFAULTS = ServerConfig()


@click.command(epilog="Example: kafkaesque serve --data /tmp/first-broker")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file with settings; flags and environment variables win over it.",
)
@click.option(
    "--listen", help=f"The address to listen on.  [default: {_DEFAULTS.listen}, this machine only]"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port; 0 takes a free one.  [default: {_DEFAULTS.port}]",
)
@click.option(
    "--advertised",
    help="The host:port that clients connect to.  [default: the one that each client used]",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"The folder for all data.  [default: {_DEFAULTS.data}]",
)
@click.option("--join", help="The host:port of any broker of the cluster to join.")
@click.option("--rack", help="The rack of this broker; replicas are spread over racks.")
@click.option(
    "--secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The cluster's secret, for brokers on several machines.",
)
@click.option(
    "--rejoin",
    "rejoins",
    is_flag=True,
    help="The journal is lost: copy everything from the other brokers again.",
)
def serve(config: Path | None, *, rejoins: bool, **given: Value | None) -> int:
    """Run one broker until it is stopped; a second signal stops it at once."""
    flags = {f"server.{name}": value for name, value in given.items() if value is not None}
    settings = load(config, os.environ, flags)
    set_up(settings.events)
    # Collectors of JSON logs read everything that a broker writes: every line must be JSON.
    is_json = settings.events.format is LogFormat.JSON
    say = logging.getLogger(__name__).info if is_json else click.echo

    def started(node: Node) -> None:
        if not is_local(settings.server.listen):
            say("anyone who reaches this address can read and write: there is no login yet")
        where = " and ".join(node.addresses)
        folder = settings.server.data.resolve()
        say(f"kafkaesque listens on {where}, data in {folder}, broker {node.node}")
        say(f"to add a broker: {node.join_command}")

    def waiting(node: Node) -> None:
        others = node.waits_for
        missing = (
            f"no link to {named_brokers(others)}" if others else "its catalog has no leader yet"
        )
        say(f"broker {node.node} waits for its cluster: {missing}")

    how = replace(node_settings(settings), rejoins=rejoins)
    error = run(serve_node(how, started, settings.broker, waiting))
    if error is not None:
        raise error
    return 0


def node_settings(settings: Settings) -> NodeSettings:
    """Return the settings that a node needs."""
    server = settings.server
    return NodeSettings(
        host=server.listen,
        port=server.port,
        data=server.data,
        advertised=server.advertised,
        join=server.join,
        rack=server.rack,
        secret_file=server.secret_file,
        stop_ms=server.stop_ms,
        linger_ms=server.linger_ms,
        limits=settings.limits,
        log=settings.log,
        text=settings.text,
        events=settings.events,
    )
