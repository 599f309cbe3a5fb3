"""A run without findings passes only if there was enough to find something in."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.chaos import alone, queues, unanswered
from tests.chaos.__main__ import is_good
from tests.chaos.checker import Verdict
from tests.chaos.history import Outcome
from tests.chaos.scenario import (
    ABORTED_MIN,
    ACCEPTED_MIN,
    COMMITTED_MIN,
    SCENARIOS,
    SENT_MIN,
    Scenario,
    line,
)
from tests.chaos.stage import Row

ENOUGH = Row(
    faults=("kill",),
    lost_answers=200,
    verdict=Verdict(
        findings=(),
        sends=Counter({Outcome.OK: SENT_MIN}),
        polled=SENT_MIN,
        transactions=Counter({Outcome.OK: COMMITTED_MIN, Outcome.FAILED: ABORTED_MIN}),
        accepted=ACCEPTED_MIN,
        redelivered=1,
    ),
    unavailable_ms=7,
    seconds=1.0,
)


def of(play: object) -> Scenario:
    return next(one for one in SCENARIOS if one.play is play)


TRANSACTIONAL = of(
    unanswered.answers_get_lost_within_transactions_of_three_while_leaders_are_killed
)
QUEUED = of(queues.the_leader_of_a_queue_is_paused)
PLAIN = of(alone.a_single_broker_is_killed_again_and_again)


def test_a_run_with_enough_of_everything_passes() -> None:
    assert is_good(TRANSACTIONAL, ENOUGH)
    assert line(TRANSACTIONAL, ENOUGH).endswith("clean")


@pytest.mark.parametrize(
    ("too_little", "said"),
    [
        (
            {Outcome.OK: 0, Outcome.FAILED: ABORTED_MIN},
            f"0 transactions committed, not {COMMITTED_MIN}",
        ),
        ({Outcome.OK: COMMITTED_MIN}, f"0 transactions aborted, not {ABORTED_MIN}"),
    ],
)
def test_a_run_with_too_few_transactions_does_not_pass(
    too_little: dict[Outcome, int], said: str
) -> None:
    row = replace(ENOUGH, verdict=replace(ENOUGH.verdict, transactions=Counter(too_little)))
    assert not is_good(TRANSACTIONAL, row)
    assert line(TRANSACTIONAL, row).endswith(f"too little: {said}")
    assert is_good(PLAIN, row), "a run without transactional producers needs none"


def test_a_run_with_too_few_lost_answers_does_not_pass() -> None:
    assert not is_good(TRANSACTIONAL, replace(ENOUGH, lost_answers=199))


@pytest.mark.parametrize(
    ("accepted", "redelivered", "said"),
    [
        (ACCEPTED_MIN - 1, 1, f"{ACCEPTED_MIN - 1} records accepted, not {ACCEPTED_MIN}"),
        (ACCEPTED_MIN, 0, "0 records delivered again, not 1"),
    ],
)
def test_a_run_whose_queue_did_too_little_does_not_pass(
    accepted: int, redelivered: int, said: str
) -> None:
    verdict = replace(ENOUGH.verdict, accepted=accepted, redelivered=redelivered)
    row = replace(ENOUGH, verdict=verdict)
    assert is_good(QUEUED, ENOUGH)
    assert not is_good(QUEUED, row)
    assert line(QUEUED, row).endswith(f"too little: {said}")
    assert is_good(PLAIN, row), "a run without a queue needs none"


def test_a_run_without_faults_or_records_does_not_pass() -> None:
    assert not is_good(PLAIN, replace(ENOUGH, faults=(), lost_answers=0))
    assert not is_good(PLAIN, replace(ENOUGH, verdict=replace(ENOUGH.verdict, sends=Counter())))
