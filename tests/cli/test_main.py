"""The command line: what it prints, and the codes it exits with."""

import subprocess
import sys

import click
import pytest

from kafkaesque import __version__
from kafkaesque.cli.main import COMMANDS, LazyGroup, run
from kafkaesque.errors import NotLeader

DATACLASSES = {
    # Settings: the pages of the reference and the TOML file follow their fields.
    "kafkaesque.cluster_config",
    "kafkaesque.config",
    "kafkaesque.coordinator_config",
    "kafkaesque.gossip.config",
    "kafkaesque.group_settings",
    "kafkaesque.net.config",
    "kafkaesque.node",
    "kafkaesque.record.limits",
    "kafkaesque.server_config",
    "kafkaesque.settings",
    "kafkaesque.topic_settings",
    # A field is not shown or not compared, which a struct cannot express.
    "kafkaesque.net.handshake",
    "kafkaesque.server.requests.session",
}
"""Where a broker has dataclasses: each costs as much start time as thirty structs."""


@click.command()
def fails() -> None:
    """Fail like a command of ours."""
    raise NotLeader(7)


@click.command()
@click.pass_context
def leaves(ctx: click.Context) -> None:
    """Exit with a code of its own."""
    ctx.exit(3)


@click.command()
def stops() -> None:
    """Behave like an interrupted command."""
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


@pytest.mark.parametrize(
    ("words", "meant"), [(["docter"], "doctor"), (["cluster", "statsu"], "status")]
)
def test_an_unknown_command_is_refused_with_a_suggestion(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown_as_wrong_usage(
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


def test_a_broker_imports_nothing_that_only_other_commands_need() -> None:
    program = "import sys, kafkaesque.cli.serve; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    loaded = set(done.stdout.splitlines())
    assert "kafkaesque.node" in loaded
    assert not {"confluent_kafka", "prometheus_client", "rich"} & loaded
    packages = ("backup", "patterns", "sim", "spark", "testing")
    assert not {f"kafkaesque.{package}" for package in packages} & loaded


def test_a_broker_imports_hardly_any_dataclass() -> None:
    program = """
import sys, kafkaesque.cli.serve
for module in list(sys.modules.values()):
    for one in vars(module).values():
        if isinstance(one, type) and "__dataclass_fields__" in vars(one):
            print(one.__module__)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    found = set(done.stdout.splitlines())
    assert {name for name in found if name.startswith("kafkaesque.")} == DATACLASSES
