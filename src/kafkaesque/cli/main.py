"""The `kafkaesque` command: finds the subcommand, and says in one sentence what went wrong.

Exit codes: 0 done, 1 failed, 2 wrong usage; a command may return another one that it documents.
"""

import importlib
from collections.abc import Mapping, Sequence

import click

from kafkaesque import __version__
from kafkaesque.errors import KafkaesqueError

FAILED = 1
INTERRUPTED = 130
"""What a shell reports for a program that was stopped with ctrl-C: 128 + SIGINT."""

COMMANDS: Mapping[str, str] = {
    "demo": "kafkaesque.cli.sim:demo",
    "serve": "kafkaesque.cli.serve:serve",
    "sim": "kafkaesque.cli.sim:sim",
}
"""Every subcommand: its name, and `module:attribute` of the click command behind it."""


class LazyGroup(click.Group):
    """A group whose commands are imported only when one of them is needed, so starting is fast."""

    def __init__(self, *, targets: Mapping[str, str], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # click's own settings, passed on
        self.targets = targets

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(self.targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name; None if there is none."""
        target = self.targets.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command), f"{target} is not a click command"
        return command


cli = click.version_option(__version__, prog_name="kafkaesque")(
    LazyGroup(
        targets=COMMANDS,
        name="kafkaesque",
        help="A messaging system that speaks Apache Kafka's protocol and replicates by Raft.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
)


def run(arguments: Sequence[str], command: click.Command = cli) -> int:
    """Run one command line and return its exit code; what went wrong is said on stderr."""
    try:
        result = command.main(list(arguments), prog_name="kafkaesque", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except click.Abort:
        return INTERRUPTED
    except KafkaesqueError as problem:
        click.echo(f"kafkaesque: {problem}", err=True)
        return FAILED
    return result if isinstance(result, int) else 0
