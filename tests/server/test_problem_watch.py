"""What is logged of a broker's problems: once, if they last, and when they are over."""

import logging

import pytest

from kafkaesque.broker.problems import Problem, ProblemKind, problems
from kafkaesque.events import DiskFull, ProblemBegun, ProblemOver
from kafkaesque.server.edge.problem_watch import Watch
from tests.heard import Heard
from tests.sim.test_broker_world import broker_of, ready_world, wait

FULL = Problem(kind=ProblemKind.DISK_FULL, text="no room")
ALONE = Problem(kind=ProblemKind.NO_MAJORITY, text="no leader")


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
    watch = Watch(lambda: found, Heard(), dict)
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
    "problem kind=no-majority: no leader",
)
def test_a_problem_that_an_election_solves_is_logged_only_if_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = [ALONE]
    watch = Watch(lambda: found, Heard(), dict)
    watch.look()
    assert watch.problems == []
    watch.look()
    assert watch.problems == [ALONE]
    assert lines(caplog) == ["problem kind=no-majority: no leader"]
    found[:] = []
    watch.look()
    found[:] = [ALONE]
    watch.look()
    assert watch.problems == [], "it must last once more"


def test_short_lived_topics_are_not_a_lasting_problem() -> None:
    kind = ProblemKind.LEADERLESS
    first = Problem(kind=kind, text="no leader for orders-0", about=frozenset({"orders.1/0"}))
    again = Problem(kind=kind, text="no leader for orders-0", about=frozenset({"orders.2/0"}))
    found = [first]
    watch = Watch(lambda: found, Heard(), dict)
    watch.look()
    found[:] = [again]
    watch.look()
    assert watch.problems == []


def test_a_problem_already_reported_by_an_event_is_not_logged_again() -> None:
    heard = Heard()
    counts = {DiskFull.name: 1}
    found = [FULL]
    watch = Watch(lambda: found, heard, lambda: counts)
    watch.look()
    assert watch.problems == [FULL], "it is shown all the same"
    found.clear()
    watch.look()
    assert heard.all == []


@pytest.mark.complains("problem kind=no-majority: the catalog has no leader, *")
@pytest.mark.event("problem", "problem_over")
def test_a_broker_reports_that_the_others_are_gone_and_that_they_are_back() -> None:
    world = ready_world()
    heard = Heard()
    broker = broker_of(world, 1)
    watch = Watch(lambda: problems(broker), heard, dict)
    for node in (2, 3):
        world.nodes[node].kill()
    wait(world, lambda: bool(problems(broker)))
    watch.look()
    watch.look()
    assert [one.kind for one in heard.of(ProblemBegun)] == ["no-majority"]
    world.heal()
    wait(world, lambda: not problems(broker))
    watch.look()
    assert heard.of(ProblemOver) == [ProblemOver(kind="no-majority")]
