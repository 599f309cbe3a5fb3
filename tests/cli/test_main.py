"""The command line: what it prints, and the codes it exits with."""

import subprocess
import sys

import click
import pytest

from kafkaesque import __version__
from kafkaesque.cli.main import COMMANDS, LazyGroup, run
from kafkaesque.errors import NotLeader


@click.command()
def fails() -> None:
    """Fail as a command of ours would."""
    raise NotLeader(7)


@click.command()
@click.pass_context
def leaves(ctx: click.Context) -> None:
    """Leave with a code of its own."""
    ctx.exit(3)


@click.command()
def stops() -> None:
    """Behave like a command that is interrupted."""
    raise KeyboardInterrupt


@pytest.fixture
def group() -> LazyGroup:
    names = ("fails", "leaves", "stops")
    return LazyGroup(targets={name: f"{__name__}:{name}" for name in names}, name="kafkaesque")


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


def test_an_error_of_ours_is_one_sentence_on_stderr(
    group: LazyGroup, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fails"], group) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"kafkaesque: {NotLeader(7)}\n"


def test_wrong_usage_exits_with_2(group: LazyGroup, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["no-such-command"], group) == 2
    assert "no-such-command" in capsys.readouterr().err


def test_no_command_at_all_is_wrong_usage_and_shows_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 2
    assert "Usage: kafkaesque" in capsys.readouterr().err


def test_a_command_chooses_its_own_exit_code(group: LazyGroup) -> None:
    assert run(["leaves"], group) == 3


def test_an_interrupted_command_exits_as_a_shell_expects(group: LazyGroup) -> None:
    assert run(["stops"], group) == 130


def test_starting_imports_no_command() -> None:
    modules = sorted({target.partition(":")[0] for target in COMMANDS.values()})
    program = "import sys, kafkaesque.__main__; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    loaded = done.stdout.splitlines()
    assert "kafkaesque.cli.main" in loaded
    assert not set(modules) & set(loaded)
    assert "rich" not in loaded
