"""Options that several commands share, so that they have the same name everywhere."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from kafkaesque.client.address import parse_addresses
from kafkaesque.client.errors import InvalidAddress

F = TypeVar("F", bound=Callable[..., Any])

NOT_DONE = 1
"""The exit code of a command that only showed what it would do; 0 if there is nothing to do."""


def _check_bootstrap(ctx: click.Context, param: click.Parameter, value: str) -> str:
    try:
        parse_addresses(value)
    except InvalidAddress as error:
        raise click.BadParameter(str(error), ctx, param) from error
    return value


def bootstrap_option(command: F) -> F:
    """Add `--bootstrap`."""
    return click.option(
        "--bootstrap",
        envvar="KAFKAESQUE_BOOTSTRAP",
        default="localhost:9092",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT,...",
        callback=_check_bootstrap,
        help="Brokers to connect to first.",
    )(command)


def json_option(command: F) -> F:
    """Add `--json`."""
    return click.option("--json", "is_json", is_flag=True, help="Print JSON, one value per line.")(
        command
    )


def yes_option(command: F) -> F:
    """Add `--yes`, without which nothing is destroyed."""
    return click.option(
        "--yes", "is_sure", is_flag=True, help="Do it; without this only show what would be done."
    )(command)


def pairs(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> list[tuple[str, str]]:
    """Read options of the form NAME=VALUE; for use as a callback."""
    found = []
    for text in values:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", ctx, param)
        found.append((name, value))
    return found


def check_changes(put: Sequence[tuple[str, str]], drop: Sequence[str]) -> None:
    """Refuse changes of settings that name none, or one of them twice."""
    names = [*(name for name, _ in put), *drop]
    if not names:
        raise click.UsageError("nothing to change: give --set or --unset")
    if len(set(names)) < len(names):
        raise click.UsageError("a setting can be changed only once at a time")
