"""`kafkaesque broker` against a real broker."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkaesque.cli.main import cli, run
from kafkaesque.testing.broker import Broker

SIZE = "group.max.size"
LOGGER = "kafkaesque.events.log"


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def kafkaesque(running: Broker, *arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["broker", *arguments, "--bootstrap", running.bootstrap])
    assert result.exit_code == 0, result.output
    return result


def settings(running: Broker, *arguments: str) -> dict[str, Any]:
    found = kafkaesque(running, "describe", *arguments, "--json").output.splitlines()
    return {one["name"]: one for one in map(json.loads, found)}


def test_cluster_wide_and_single_settings_are_set_shown_and_unset(running: Broker) -> None:
    assert SIZE not in settings(running)
    done = kafkaesque(running, "alter", "--set", f"{SIZE}=20")
    assert done.output == "all brokers: settings changed\n"
    assert settings(running)[SIZE] == {
        "name": SIZE,
        "value": "20",
        "source": "all brokers",
        "changeable": True,
    }
    done = kafkaesque(running, "alter", "1", "--set", f"{SIZE}=30", "--json")
    assert json.loads(done.output) == {"broker": 1, "changed": True}
    assert (settings(running, "1")[SIZE]["value"], settings(running)[SIZE]["value"]) == ("30", "20")
    kafkaesque(running, "alter", "1", "--unset", SIZE)
    assert settings(running, "1")[SIZE]["source"] == "all brokers"
    kafkaesque(running, "alter", "--unset", SIZE)
    assert SIZE not in settings(running, "1")
    assert settings(running, "1", "--all")[SIZE]["source"] == "default"


def test_a_dry_run_says_whether_the_change_is_possible(running: Broker) -> None:
    done = kafkaesque(running, "alter", "--dry-run", "--set", f"{SIZE}=20")
    assert done.output == "settings of all brokers could be changed\n"
    assert settings(running) == {}


def test_logger_levels_are_shown_and_changed(running: Broker) -> None:
    def levels() -> dict[str, str]:
        found = kafkaesque(running, "log", "1", "--json").output.splitlines()
        return {one["logger"]: one["level"] for one in map(json.loads, found)}

    before = levels()[LOGGER]
    done = kafkaesque(running, "log", "1", "--set", f"{LOGGER}=ERROR")
    assert done.output == "broker 1: levels changed\n"
    assert levels()[LOGGER] == "ERROR"
    kafkaesque(running, "log", "1", "--unset", LOGGER)
    assert levels()[LOGGER] == before


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("alter",), 2, "nothing to change"),
        (("alter", "--set", f"{SIZE}=1", "--unset", SIZE), 2, "only once at a time"),
        (("alter", "--set", f"{SIZE}=few"), 1, "group.max.size must be a whole number, not 'few'"),
        (("alter", "--set", "log.dirs=x"), 1, "log.dirs cannot be changed at run time"),
        (("log", "1", "--set", "kafkaesque.nowhere=INFO"), 1, "unknown logger"),
    ],
)
def test_an_invalid_change_is_refused_in_one_sentence(
    running: Broker,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    assert run(["broker", *arguments, "--bootstrap", running.bootstrap]) == code
    assert said in capsys.readouterr().err
