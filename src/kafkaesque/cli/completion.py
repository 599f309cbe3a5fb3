"""`kafkaesque completion`: the script that completes commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

from kafkaesque.cli.main import cli


@click.command(epilog='Example: eval "$(kafkaesque completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands in a shell.

    Evaluate it in your shell's start-up file.
    """
    found = get_completion_class(shell)
    assert found is not None, "click knows these three shells"
    click.echo(found(cli, {}, "kafkaesque", "_KAFKAESQUE_COMPLETE").source())
