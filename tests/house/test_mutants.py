"""Every bug can still be planted: to hunt them all takes an hour, and code moves every day."""

import pytest

from tests.mutants.hunt import SCRIPTED, TESTS
from tests.mutants.mutation import Mutant
from tests.mutants.planting import PLANTED


@pytest.mark.parametrize("mutant", PLANTED, ids=lambda mutant: mutant.name)
def test_the_code_that_a_planted_bug_breaks_is_there(mutant: Mutant) -> None:
    with mutant.planted():
        pass


def test_no_two_planted_bugs_have_one_name() -> None:
    assert len({mutant.name for mutant in PLANTED}) == len(PLANTED)


@pytest.mark.parametrize("name", SCRIPTED)
def test_what_kills_a_planted_bug_is_there_and_in_every_run(name: str) -> None:
    assert "mark.long" not in (TESTS / name).read_text()
