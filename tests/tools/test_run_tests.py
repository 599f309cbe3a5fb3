"""The budget table: what is over budget, what failed, and the exit code."""

from itertools import chain
from pathlib import Path

import pytest

from tools.run_tests import (
    GROUPS,
    LANES,
    NO_TESTS_COLLECTED,
    TOTAL_MINUTES_MAX,
    Group,
    Outcome,
    command,
    exit_code,
    failures,
    results,
    run,
    run_all,
    slowest,
    table,
)

UNIT = Group(name="unit", marks="not chaos", minutes_max=2)


def an_outcome(minutes: float, code: int = 0) -> Outcome:
    return Outcome(group=UNIT, minutes=minutes, exit_code=code)


def test_a_group_over_its_budget_is_a_warning_and_not_a_failure() -> None:
    outcomes = [an_outcome(2.5)]
    assert "over budget" in table(outcomes, 2.5)[1]
    assert exit_code(outcomes) == 0


def test_a_failed_group_fails_the_run_even_if_others_pass() -> None:
    assert exit_code([an_outcome(1, 1), an_outcome(1)]) == 1


def test_a_group_without_tests_shows_no_time_and_does_not_fail() -> None:
    outcomes = [an_outcome(1), an_outcome(0.1, NO_TESTS_COLLECTED)]
    assert " - " in table(outcomes, 1)[2]
    assert exit_code(outcomes) == 0


def test_a_run_without_any_test_fails() -> None:
    assert exit_code([an_outcome(0.1, NO_TESTS_COLLECTED)]) == 1


def test_each_group_is_in_one_lane_and_a_lane_has_time_for_its_groups() -> None:
    assert sorted(chain(*LANES)) == sorted(group.name for group in GROUPS)
    minutes = {group.name: group.minutes_max for group in GROUPS}
    for lane in LANES:
        assert sum(minutes[name] for name in lane) <= TOTAL_MINUTES_MAX + 1


def test_outcomes_are_in_the_order_of_the_groups_whichever_lane_they_ran_in(
    tmp_path: Path,
) -> None:
    groups = [group.run_by(tmp_path / "absent") for group in GROUPS]
    outcomes, _ = run_all(groups)
    assert [outcome.group.name for outcome in outcomes] == [group.name for group in GROUPS]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_long_tests_run_only_on_request(group: Group) -> None:
    assert command(group)[-1].endswith("and not long")
    assert "long" not in command(group.whole())[-1]


def test_a_group_with_a_missing_environment_says_so_and_does_not_fail(tmp_path: Path) -> None:
    group = Group(name="far", marks="far", minutes_max=1, python=tmp_path / "python")
    outcome = run(group)
    assert "NOT INSTALLED" in table([outcome], 0)[1]
    assert exit_code([an_outcome(1), outcome]) == 0


def test_the_slowest_tests_of_all_groups_are_named(tmp_path: Path) -> None:
    path = tmp_path / "unit.xml"
    path.write_text(
        '<testsuites><testsuite><testcase classname="tests.a" name="fast" time="0.1"/>'
        '<testcase classname="tests.b" name="slow" time="12.34"/></testsuite></testsuites>'
    )
    outcome = Outcome(group=UNIT, minutes=1, exit_code=0, tests=results(path))
    lines = slowest([outcome, an_outcome(1)], count=1)
    assert [line.split() for line in lines[1:]] == [["12.3", "tests.b::slow"]]
    assert slowest([an_outcome(1)]) == []
    assert results(tmp_path / "absent.xml") == ()


def test_failed_tests_are_shown_last_with_the_end_of_their_traceback(tmp_path: Path) -> None:
    path = tmp_path / "unit.xml"
    path.write_text(
        '<testsuites><testsuite><testcase classname="tests.a" name="good" time="0.1"/>'
        '<testcase classname="tests.b" name="bad" time="1"><failure message="short">'
        f"{'first' + chr(10) * 100}assert 1 == 2</failure></testcase>"
        '<testcase classname="tests.c" name="broken" time="1"><error message="no fixture"/>'
        "</testcase></testsuite></testsuites>"
    )
    outcome = Outcome(group=UNIT, minutes=1, exit_code=1, tests=results(path))
    lines = [line for line in failures([outcome]) if line]
    assert lines == ["FAILED tests.b::bad", "assert 1 == 2", "FAILED tests.c::broken", "no fixture"]
    assert failures([an_outcome(1)]) == []
