"""Many seeds: every result reaches the table."""

import pytest

from kafkaesque.sim.checks import Violation
from kafkaesque.sim.many import Failure, Totals, run_many, try_seed
from kafkaesque.sim.run import Report

STEPS = 150

# A pool forks, and newer Pythons warn of that where threads run, as they do under pytest-xdist.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def breaks(seed: int, steps: int) -> Report:
    raise Violation(f"seed {seed} of {steps} steps")


def stops(seed: int, steps: int) -> Report:
    raise KeyboardInterrupt


def test_a_seed_that_passes_returns_a_report() -> None:
    result = try_seed(1, STEPS)
    assert isinstance(result, Report)
    assert result.seed == 1
    assert result.steps >= STEPS
    assert result.counts["acknowledged"] > 0


def test_a_seed_that_breaks_a_promise_is_a_failure_and_not_an_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaesque.sim.many.run_seed", breaks)
    result = try_seed(17, STEPS)
    assert isinstance(result, Failure)
    assert result.error == f"Violation: seed 17 of {STEPS} steps"
    assert "in breaks" in result.trace
    assert result.command == "kafkaesque sim 17"


def test_ctrl_c_is_not_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkaesque.sim.many.run_seed", stops)
    with pytest.raises(KeyboardInterrupt):
        try_seed(1, STEPS)


def test_totals_add_up_reports_and_keep_failures_apart() -> None:
    totals = Totals()
    totals.add(Report(seed=1, steps=10, counts={"kills": 2}))
    totals.add(Report(seed=2, steps=5, counts={"kills": 1, "cuts": 4}))
    failure = Failure(seed=3, error="Violation", trace="")
    totals.add(failure)
    assert totals.seeds == 3
    assert totals.steps == 15
    assert totals.counts == {"kills": 3, "cuts": 4}
    assert totals.failures == [failure]


def test_the_totals_of_many_seeds_are_the_sum_of_each() -> None:
    seeds = range(40, 63)
    expected = Totals()
    for seed in seeds:
        expected.add(try_seed(seed, STEPS))
    told: list[int] = []
    totals = run_many(seeds, STEPS, lambda so_far: told.append(so_far.seeds), workers=2)
    assert totals == expected
    assert told == [10, 20, 23]


def test_no_seeds_have_no_totals() -> None:
    assert run_many(range(0), STEPS, lambda _: None, workers=1) == Totals()
