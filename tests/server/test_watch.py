"""What is told of a broker's problems: once, when they last, and that they are over."""

import logging

import pytest

from kafkaesque.broker.problems import Problem, ProblemKind
from kafkaesque.server.watch import Watch

FULL = Problem(kind=ProblemKind.DISK_FULL, text="no room")
ALONE = Problem(kind=ProblemKind.NO_MAJORITY, text="nobody leads")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


@pytest.mark.complains(
    "problem kind=disk-full: no room",
)
def test_a_problem_is_logged_once_and_once_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    found = [FULL]
    watch = Watch(lambda: found)
    watch.look()
    assert lines(caplog) == ["problem kind=disk-full: no room"]
    watch.look()
    assert lines(caplog) == []
    assert watch.problems == [FULL]
    found.clear()
    watch.look()
    assert lines(caplog) == ["problem_over kind=disk-full"]
    assert watch.problems == []


@pytest.mark.complains(
    "problem kind=no-majority: nobody leads",
)
def test_what_an_election_cures_is_told_only_if_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    found = [ALONE]
    watch = Watch(lambda: found)
    watch.look()
    assert watch.problems == []
    watch.look()
    assert watch.problems == [ALONE]
    assert lines(caplog) == ["problem kind=no-majority: nobody leads"]
    found[:] = []
    watch.look()
    found[:] = [ALONE]
    watch.look()
    assert watch.problems == [], "it must last once more"


def test_topics_that_come_and_go_are_no_lasting_problem() -> None:
    kind = ProblemKind.LEADERLESS
    first = Problem(kind=kind, text="nobody leads orders-0", about=frozenset({"orders.1/0"}))
    again = Problem(kind=kind, text="nobody leads orders-0", about=frozenset({"orders.2/0"}))
    found = [first]
    watch = Watch(lambda: found)
    watch.look()
    found[:] = [again]
    watch.look()
    assert watch.problems == []
