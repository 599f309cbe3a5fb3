"""The reference page of the command line, made from the commands themselves."""

from collections.abc import Iterator

import click

from kafkaesque.cli.main import cli

_HEAD = """\
# Command line

Every command with its options and exit codes. Generated from the commands by `make docs`; do not
edit.

Exit codes: 0 done, 1 failed (one sentence on stderr says why), 2 wrong usage, 130 interrupted.
Every command answers `-h` and `--help`.
"""


def commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and everything below it, each with the words that call it."""
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
                    yield f"| `{record[0].replace('|', chr(92) + '|')}` | {record[1]} |"
            case click.Argument():
                yield f"| `{parameter.make_metavar(context)}` | |"


def section(words: str, command: click.Command) -> str:
    """Return what the page says about one command."""
    context = click.Context(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    parts = [f"## {words}", f"```\n{usage}\n```", command.help or ""]
    rows = list(_parameters(command, context))
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(part.strip() for part in parts if part)


def render() -> str:
    """Return the page."""
    sections = [section(words, command) for words, command in commands(cli, ("kafkaesque",))]
    return "\n\n".join([_HEAD.strip(), *sections]) + "\n"
