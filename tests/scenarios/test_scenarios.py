"""Every scenario gives exactly the trace below its commands."""

from pathlib import Path

import pytest

from tests.scenarios.runner import parse, play

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.requirement("REP-2")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_scenario_runs_as_written(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = play(text)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(played)
    else:
        assert played == text, "pytest tests/scenarios --rewrite shows the difference"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_scenario_starts_with_the_reason_why_it_exists(path: Path) -> None:
    assert parse(path.read_text())[0].comments


def test_a_scenario_whose_trace_differs_is_noticed() -> None:
    text = "# a group of one\ncluster 1\ncampaign 1\n----\n  1 becomes leader in term 2\n"
    assert play(text) != text


def test_an_unknown_command_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no such command"):
        play("cluster 1\nfly 1\n----\n")
