"""The `kafkaesque` command: finds the subcommand and reports failures in one sentence.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 outcome unknown; a command may return another one
that it documents.
"""

import difflib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from kafkaesque import __version__
from kafkaesque.errors import KafkaesqueError, OutcomeUnknown

FAILED = 1
UNKNOWN = 3
"""It may or may not have been done: check before you repeat it."""
INTERRUPTED = 130
"""What a shell reports for a program that was stopped with ctrl-C: 128 + SIGINT."""

COMMANDS: Mapping[str, str] = {
    "backup": "kafkaesque.cli.backup:backup",
    "bench": "kafkaesque.cli.bench:bench",
    "broker": "kafkaesque.cli.broker:broker",
    "cluster": "kafkaesque.cli.cluster:cluster",
    "completion": "kafkaesque.cli.completion:completion",
    "consume": "kafkaesque.cli.consume:consume",
    "demo": "kafkaesque.cli.demo:demo",
    "dlq": "kafkaesque.cli.dlq:dlq",
    "doctor": "kafkaesque.cli.doctor:doctor",
    "group": "kafkaesque.cli.group:group",
    "log": "kafkaesque.cli.log:log",
    "pipeline": "kafkaesque.cli.pipeline:pipeline",
    "produce": "kafkaesque.cli.produce:produce",
    "restore": "kafkaesque.cli.backup:restore",
    "serve": "kafkaesque.cli.serve:serve",
    "sim": "kafkaesque.cli.sim:sim",
    "topic": "kafkaesque.cli.topic:topic",
    "transaction": "kafkaesque.cli.transaction:transaction",
}
"""Every subcommand: its name, and `module:attribute` of the click command behind it."""

SUMMARIES: Mapping[str, str] = {
    "backup": "Save topics and groups to a folder while the brokers run.",
    "bench": "Measure brokers: sending, reading, and end-to-end latency.",
    "broker": "See and change settings of brokers while they run.",
    "cluster": "Start brokers on this machine, and manage a cluster.",
    "completion": "Print the script that completes commands in a shell.",
    "consume": "Print the records of a topic as they arrive.",
    "demo": "Watch three brokers lose one of them and no records.",
    "dlq": "Inspect dead letters and send them back.",
    "doctor": "Report what is wrong with a cluster, and how to fix it.",
    "group": "Inspect consumer groups and share groups, and change their offsets.",
    "log": "Inspect log files without a broker.",
    "pipeline": "Run ready-made jobs on Spark, and generate test data for them.",
    "produce": "Send the lines of a file, or of stdin, to a topic.",
    "restore": "Restore topics and groups from a folder.",
    "serve": "Run one broker until it is stopped.",
    "sim": "Run a whole cluster on simulated disks, network and clocks.",
    "topic": "List, create, change and delete topics.",
    "transaction": "Inspect transactions and end stuck ones.",
}
"""The first sentence of each command's help, so that listing the commands imports none of them."""


def suggested(error: click.UsageError, names: Sequence[str], given: str) -> click.UsageError:
    """Return the error with the closest known name as a suggestion."""
    alike = difflib.get_close_matches(given, names, n=1)
    hint = f" Did you mean {alike[0]}?" if alike else ""
    return click.UsageError(f"{error.message}{hint}", error.ctx)


class Group(click.Group):
    """A group of subcommands that suggests a name for a mistyped one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is refused with the closest name as a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise suggested(error, self.list_commands(ctx), args[0]) from None


class LazyGroup(Group):
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their SUMMARIES; those without one are imported."""
        rows = []
        for name in self.list_commands(ctx):
            summary = SUMMARIES.get(name)
            if summary is None:
                command = self.get_command(ctx, name)
                assert command is not None, f"{name} is listed but does not exist"
                summary = command.get_short_help_str(formatter.width)
            rows.append((name, summary))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


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
    """Run one command line and return its exit code; errors go to stderr."""
    try:
        result = command.main(list(arguments), prog_name="kafkaesque", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone: discard what Python still buffers.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OutcomeUnknown as problem:
        click.echo(f"kafkaesque: {problem}", err=True)
        return UNKNOWN
    except KafkaesqueError as problem:
        click.echo(f"kafkaesque: {problem}", err=True)
        return FAILED
    return result if isinstance(result, int) else 0
