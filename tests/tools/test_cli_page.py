"""The reference page of the command line: commands and their options."""

import click

from tools.cli_page import commands, section


@click.group()
def outer() -> None:
    """The root group."""


@outer.command()
@click.option("--seeds", default=10, show_default=True, help="How many to run.")
@click.argument("topic")
def inner(seeds: int, topic: str) -> None:
    """Do the work."""


def test_commands_in_groups_are_listed_under_their_full_names() -> None:
    assert [words for words, _ in commands(outer, ("top",))] == ["top", "top inner"]


def test_a_section_shows_usage_help_options_and_arguments() -> None:
    text = section("top inner", inner)
    for part in ("## top inner", "top inner [OPTIONS] TOPIC", "Do the work.", "default: 10"):
        assert part in text
    assert "| `--seeds INTEGER` | How many to run." in text
    assert "--help" not in text
