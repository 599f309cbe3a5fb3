"""Help, examples and completion, without delay."""

import subprocess
import sys

import click
import pytest

from kafkaesque.cli.main import COMMANDS, SUMMARIES, cli, run
from tools.cli_page import commands

ALL = list(commands(cli, ("kafkaesque",)))
LEAVES = [(words, command) for words, command in ALL if not isinstance(command, click.Group)]
SLOW = ("rich", "confluent_kafka", "kafkaesque.client", "kafkaesque.wire", "kafkaesque.node")


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[words for words, _ in LEAVES])
def test_every_command_has_help_and_an_example_that_names_it(
    words: str, command: click.Command
) -> None:
    assert command.help
    assert command.epilog is not None
    assert command.epilog.startswith("Example: ")
    assert words in command.epilog
    assert len(command.epilog) < 100


@pytest.mark.parametrize(("words", "command"), ALL, ids=[words for words, _ in ALL])
def test_every_option_has_help(words: str, command: click.Command) -> None:
    bare = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert bare == []


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[words for words, _ in LEAVES])
def test_help_is_shown(
    words: str, command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words.split()[1:], "--help"]) == 0
    assert f"Usage: {words}" in capsys.readouterr().out


def test_the_list_of_commands_has_each_commands_own_summary() -> None:
    assert SUMMARIES.keys() == COMMANDS.keys()
    context = click.Context(cli)
    for name, summary in SUMMARIES.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert (command.help or "").startswith(summary.removesuffix("."))


def test_the_help_of_all_commands_imports_nothing_slow() -> None:
    program = (
        "import sys; from kafkaesque.cli.main import run; "
        "code = run(['--help']); print(*sys.modules, sep='\\n', file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "Usage: kafkaesque" in done.stdout
    loaded = done.stderr.splitlines()
    assert "click" in loaded
    assert [name for name in loaded if name.startswith(SLOW)] == []


@pytest.mark.parametrize("words", ["topic list", "produce", "consume"])
def test_the_help_of_a_command_does_not_import_librdkafka(words: str) -> None:
    program = (
        "import sys; from kafkaesque.cli.main import run; "
        f"run([*{words.split()!r}, '--help']); print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    loaded = done.stderr.splitlines()
    assert "kafkaesque.client" in loaded
    assert not {"confluent_kafka", "rich"} & set(loaded)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_KAFKAESQUE_COMPLETE" in script
    assert f"{shell}_complete" in script
