"""The reference page of the command line, generated from the commands."""

from collections.abc import Iterator
from inspect import cleandoc

import click

from kafkaesque.cli.main import cli

_HEAD = """\
# Command line

Every command with its options and exit codes. Generated from the commands by `make docs`; do not
edit.

Exit codes: 0 done, or nothing to do (a sentence says so); 1 failed (one sentence on stderr says
why), or only a preview because `--yes` was missing or `--dry-run` given; 2 wrong usage; 3 outcome
unknown (it may or may not have been done); 130 interrupted.
Every command accepts `-h` and `--help`. Lists are tables on a terminal, tab-separated lines in a
pipe, and with `--json` one JSON value per line.
"""


def commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and everything below it, each with the words that invoke it."""
    yield " ".join(words), command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=words[-1])
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, f"{name} is listed but does not exist"
            yield from commands(below, (*words, name))


def _parameters(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        match parameter:
            case click.Option():
                record = parameter.get_help_record(context)
                if record is not None and "--help" not in parameter.opts:
                    yield f"| `{_cell(record[0])}` | {record[1]} |"
            case click.Argument():
                yield f"| `{_cell(parameter.make_metavar(context))}` | |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def section(words: str, command: click.Command) -> str:
    """Return the section about one command."""
    context = click.Context(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    parts = [f"## {words}", f"```\n{usage}\n```", cleandoc(command.help or "")]
    if command.epilog is not None:
        parts.append(f"Example: `{command.epilog.removeprefix('Example: ')}`")
    rows = list(_parameters(command, context))
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(part.strip() for part in parts if part)


def render() -> str:
    """Return the page."""
    sections = [section(words, command) for words, command in commands(cli, ("kafkaesque",))]
    return "\n\n".join([_HEAD.strip(), *sections]) + "\n"
