"""`kafkaesque serve`: one broker."""

import asyncio
from pathlib import Path

import click

from kafkaesque.node import Node, NodeSettings
from kafkaesque.node import serve as serve_node


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    return host == "localhost" or host.startswith("127.") or host == "::1"


@click.command(epilog="Example: kafkaesque serve --data /tmp/first-broker")
@click.option("--listen", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data"),
    show_default=True,
    help="The folder that holds everything.",
)
def serve(listen: str, port: int, data: Path) -> int:
    """Run one broker until it is told to stop."""

    def started(node: Node) -> None:
        if not is_loopback(listen):
            click.echo("anybody who reaches this address can read and write: there is no login yet")
        click.echo(f"kafkaesque listens on {listen}:{node.port}, data in {data.resolve()}")

    error = asyncio.run(serve_node(NodeSettings(host=listen, port=port, data=data), started))
    if error is not None:
        raise error
    return 0
