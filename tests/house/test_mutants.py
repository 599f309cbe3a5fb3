"""Every bug can still be planted: to hunt them all takes an hour, and code moves every day."""

from pathlib import Path

import pytest

import tests.mutants.hunt as hunting
from kafkaesque.raft.quorum import majority
from tests.mutants.hunt import SCRIPTED, TESTS, FailsAnyway, hunt
from tests.mutants.mutation import Mutant
from tests.mutants.planted_answers import ANSWER_MUTANTS
from tests.mutants.planting import EVERY, PLANTED


@pytest.mark.parametrize("mutant", EVERY.values(), ids=lambda mutant: mutant.name)
def test_the_code_that_a_planted_bug_breaks_is_there(mutant: Mutant) -> None:
    with mutant.planted():
        pass


def test_no_two_planted_bugs_have_one_name() -> None:
    assert len(EVERY) == len(PLANTED) + len(ANSWER_MUTANTS)


@pytest.mark.parametrize("name", SCRIPTED)
def test_what_kills_a_planted_bug_is_there_and_in_every_run(name: str) -> None:
    assert "mark.long" not in (TESTS / name).read_text()


def test_a_bug_is_planted_also_where_its_function_was_imported_by_name() -> None:
    with EVERY["half of the voters is a majority"].planted():
        assert majority(4) == 2
    assert majority(4) == 3


@pytest.mark.parametrize("text", ["assert False", "raise OSError"])
def test_a_test_that_fails_without_a_bug_notices_none(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    red = tmp_path / "test_red.py"
    red.write_text(f"def test_red():\n    {text}\n")
    monkeypatch.setattr(hunting, "SCENARIOS", tmp_path)
    monkeypatch.setattr(hunting, "SCRIPTED", (str(red),))
    with pytest.raises(FailsAnyway, match="test_red"):
        hunt(PLANTED[0], seeds_max=0)


def test_a_test_that_fails_with_a_bug_alone_notices_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    green = tmp_path / "test_majority.py"
    green.write_text(
        "from kafkaesque.raft import quorum\n"
        "def test_majority():\n    assert quorum.majority(4) == 3\n"
    )
    monkeypatch.setattr(hunting, "SCENARIOS", tmp_path)
    monkeypatch.setattr(hunting, "SCRIPTED", (str(green),))
    assert hunt(EVERY["half of the voters is a majority"], seeds_max=0).by == str(green)
    assert not hunt(EVERY["a replica votes twice in a term"], seeds_max=0).is_caught
