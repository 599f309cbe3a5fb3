"""How marks on tests determine the state of a requirement."""

from pathlib import Path

from tools.requirements_page import Requirement, State, marked_ids

SOURCE = """
import pytest
pytestmark = [pytest.mark.requirement("LOG-1")]

@pytest.mark.simulation
@pytest.mark.requirement("REP-2", "REP-4")
def test_x() -> None: ...

requirement("Q-1")
"""


def a_requirement(*, complete: bool) -> Requirement:
    return Requirement(id="LOG-1", area="Storage", text="keep it", complete=complete)


def test_marks_are_found_on_functions_and_modules() -> None:
    assert sorted(marked_ids(SOURCE)) == ["LOG-1", "REP-2", "REP-4"]


def test_a_requirement_without_a_test_is_planned_whatever_the_file_says() -> None:
    assert a_requirement(complete=True).state([]) is State.PLANNED


def test_a_requirement_with_tests_works_only_if_they_are_complete() -> None:
    tests = [Path("tests/log/test_log.py")]
    assert a_requirement(complete=False).state(tests) is State.PARTLY
    assert a_requirement(complete=True).state(tests) is State.WORKS
