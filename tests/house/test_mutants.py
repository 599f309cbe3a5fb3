"""Every bug can still be planted: hunting all of them takes minutes, and code changes every day."""

import ast
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaesque.raft.quorum import majority
from tests.house.asserting import module
from tests.mutants import killers, playing
from tests.mutants.crew import WorkerDied, apart
from tests.mutants.hunt import SCRIPTED, TESTS, Seen, hunt, in_order, misfits, seed_of, survey
from tests.mutants.mutation import Mutant
from tests.mutants.planted_answers import ANSWER_MUTANTS
from tests.mutants.planting import EVERY, PLANTED
from tests.mutants.playing import Hangs, limited

HALF = EVERY["half of the voters is a majority"]
TWICE = EVERY["a replica votes twice in a term"]


@pytest.mark.parametrize("mutant", EVERY.values(), ids=lambda mutant: mutant.name)
def test_the_code_that_a_planted_bug_breaks_exists(mutant: Mutant) -> None:
    with mutant.planted():
        pass


def test_the_names_of_planted_bugs_are_unique() -> None:
    assert len(EVERY) == len(PLANTED) + len(ANSWER_MUTANTS)


@pytest.mark.parametrize("name", SCRIPTED)
def test_the_killer_of_a_planted_bug_exists_and_is_in_every_run(name: str) -> None:
    assert "mark.long" not in (TESTS / name).read_text()


def test_a_test_that_only_runs_seeds_is_not_tried() -> None:
    found = {
        test.name
        for name in SCRIPTED
        for test in module(TESTS / name).tests
        if any(name in ast.unparse(test) for name in ("try_seed", "play_seeds"))
    }
    assert found <= playing.OF_SEEDS
    files = [module(TESTS / name).defined for name in SCRIPTED]
    assert all(any(name in file for file in files) for name in playing.OF_SEEDS)


def test_a_bug_is_also_planted_where_its_function_was_imported_by_name() -> None:
    with HALF.planted():
        assert majority(4) == 2
    assert majority(4) == 3


def a_file_of(folder: Path, text: str) -> str:
    file = folder / "test_some.py"
    file.write_text(text)
    return str(file)


def at_once(one: Seen) -> Seen:
    return replace(one, played=replace(one.played, seconds=0.0))


SLOW_SECONDS = 0.2
MAJORITIES = f"""
import time
from kafkaesque.raft import quorum
def test_of_something_else(): assert quorum
def test_slow(): time.sleep({SLOW_SECONDS}); assert quorum.majority(4) == 3
def test_quick(): assert quorum.majority(4) == 3
"""


def test_of_the_tests_that_reach_a_bug_the_quickest_is_tried_first(
    tmp_path: Path,
) -> None:
    seen = apart(survey, a_file_of(tmp_path, MAJORITIES), [HALF]).result
    (slow,) = (one for one in seen if one.test.name.endswith("test_slow"))
    assert slow.played.seconds >= SLOW_SECONDS
    # The machine may have stood still during the others.
    seen = [one if one is slow else at_once(one) for one in seen]
    names = [test.name.rpartition("::")[2] for test in in_order(HALF, seen)]
    assert names == ["test_quick", "test_slow", "test_of_something_else"]
    assert in_order(TWICE, seen) == []
    catch = apart(hunt, HALF, in_order(HALF, seen), range(0)).result
    assert (catch.by.rpartition("::")[2], catch.tests) == ("test_quick", 1)


def test_a_bug_is_not_called_caught_if_no_test_and_no_seed_notices_it(tmp_path: Path) -> None:
    seen = apart(survey, a_file_of(tmp_path, MAJORITIES), [HALF]).result
    catch = apart(hunt, TWICE, [one.test for one in seen], range(0)).result
    assert (catch.is_caught, catch.tests) == (False, 3)


@pytest.mark.parametrize("text", ["assert False", "raise OSError"])
def test_a_test_that_fails_without_a_bug_notices_none(text: str, tmp_path: Path) -> None:
    red = a_file_of(tmp_path, f"{MAJORITIES}\ndef test_red(): quorum.majority(4); {text}\n")
    seen = apart(survey, red, [HALF]).result
    assert [one.test.name.rpartition("::")[2] for one in seen if not one.played.is_green] == [
        "test_red"
    ]
    assert not any("red" in one.name for one in in_order(HALF, seen))
    reds = [one.test for one in seen if not one.played.is_green]
    assert not apart(hunt, HALF, reds, range(0)).result.is_caught


def test_a_test_file_that_cannot_be_imported_because_of_a_bug_notices_it(tmp_path: Path) -> None:
    text = f"{MAJORITIES}\nassert quorum.majority(4) == 3\n"
    seen = apart(survey, a_file_of(tmp_path, text), [HALF]).result
    assert len(in_order(HALF, seen)) == 3
    assert apart(hunt, HALF, in_order(HALF, seen), range(0)).result.by.endswith("test_some.py")


def test_a_bug_that_makes_a_test_run_forever_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "SECONDS_MAX", 0.05)
    with pytest.raises(Hangs), limited():
        while True:
            pass


def test_a_process_that_ends_without_a_result_is_not_a_catch() -> None:
    with pytest.raises(WorkerDied):
        apart(os._exit, 3)


def test_a_bug_that_no_longer_fits_the_code_is_reported() -> None:
    moved = replace(HALF, name="moved", target=f"{HALF.target}_of_old")
    changed = replace(HALF, name="changed", old="what nobody wrote")
    assert misfits([HALF, moved, changed]).keys() == {"moved", "changed"}


def test_killers_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    known = {'a "rule" with (a) = b': "tests/a/test_b.py::test_c[é-\\u00e9]", "other": "seed 7"}
    killers.write(known, tmp_path / "killers.toml")
    assert killers.read(tmp_path / "killers.toml") == known
    assert [seed_of(by) for by in known.values()] == [None, 7]


def test_killers_toml_names_only_planted_bugs() -> None:
    assert killers.read().keys() <= {mutant.name for mutant in PLANTED}
