"""`kafkaesque sim`: what it prints and the codes it exits with."""

import re

import pytest

from kafkaesque.cli import sim as commands
from kafkaesque.cli.main import run
from kafkaesque.sim import story
from kafkaesque.sim.checks import Violation
from kafkaesque.sim.many import Failure, Kind, Totals
from kafkaesque.sim.run import check_end
from kafkaesque.sim.world import World

COLUMNS = 80
STEPS = "200"

# A pool forks, and newer Pythons warn of that where threads run, as they do under pytest-xdist.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")


def fails(seed: int, steps: int, kind: Kind = Kind.LOGS) -> Failure:
    return Failure(seed=seed, error="Violation: [two] leaders", trace="where it happened")


def row(text: str, name: str) -> int:
    """Return the count in a table for a name."""
    found = re.search(rf"│ {re.escape(name)} +│ +([\d,]+) │", text)
    assert found is not None, text
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sim"], "give either one SEED or --seeds"),
        (["sim", "5", "--seeds", "3"], "give either one SEED or --seeds"),
        (["sim", "five"], "'five' is not a valid integer"),
        (["sim", "--seeds", "0"], "0 is not in the range x>=1"),
        (["sim", "5", "--steps", "0"], "0 is not in the range x>=1"),
    ],
)
def test_wrong_usage_exits_with_2_and_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert sentence in errors[0]
    assert "Traceback" not in captured.err


def test_one_seed_names_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "5", "--steps", STEPS]) == 0
    out = capsys.readouterr().out
    assert f"kafkaesque sim 5 --steps {STEPS}" in out
    assert row(out, "violations") == 0
    assert row(out, "steps") >= int(STEPS)


def test_a_failing_seed_exits_with_1_and_says_why_where_and_how_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "try_seed", fails)
    assert run(["sim", "99"]) == 1
    out = capsys.readouterr().out
    assert "where it happened" in out
    assert "seed 99 broke a promise: Violation: [two] leaders" in out
    assert out.splitlines()[-1] == "repeat it with: kafkaesque sim 99 --steps 1500"


def test_many_seeds_are_counted_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "--seeds", "3", "--first", "20", "--steps", STEPS]) == 0
    out = capsys.readouterr().out
    assert "seeds 20 to 22" in out
    assert row(out, "seeds") == 3
    assert row(out, "violations") == 0


def test_failing_seeds_are_listed_with_their_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def some_fail(seeds: range, steps: int, progress: object, kind: Kind) -> Totals:
        totals = Totals()
        for seed in seeds:
            totals.add(fails(seed, steps))
        return totals

    monkeypatch.setattr(commands, "run_many", some_fail)
    assert run(["sim", "--seeds", "2", "--first", "70", "--steps", STEPS]) == 1
    out = capsys.readouterr().out
    assert "seed 71: Violation: [two] leaders" in out
    assert f"kafkaesque sim 71 --steps {STEPS}" in out
    assert row(out, "violations") == 2


def test_a_story_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "7", "--story"]) == 0
    out = capsys.readouterr().out
    assert row(out, "batches acknowledged") >= 400
    assert row(out, "of these lost") == 0


def test_a_story_exits_with_1_when_an_acknowledged_record_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check_then_lose(world: World) -> None:
        check_end(world)
        log = world.nodes[1].replicas[story.GROUP].log
        log.segments.truncate(log.segments.batch_base(log.end_offset - 1))

    monkeypatch.setattr(story, "check_end", check_then_lose)
    assert run(["sim", "7", "--story"]) == 1
    out = capsys.readouterr().out
    assert row(out, "of these lost") == 1
    assert "what was acknowledged is lost" in out


def test_a_story_exits_with_1_when_a_check_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def complain(world: World) -> None:
        raise Violation("log matching: [one] entry too many")

    monkeypatch.setattr(story, "check_end", complain)
    assert run(["sim", "7", "--story"]) == 1
    assert "A promise was broken: log matching: [one] entry" in capsys.readouterr().out


def test_a_story_needs_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "--seeds", "3", "--story"]) == 2
    assert "--story needs a SEED" in capsys.readouterr().err
