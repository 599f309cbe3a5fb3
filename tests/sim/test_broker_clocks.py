"""Clocks that are wrong, and jump, while brokers delete what is old."""

import pytest

from kafkaesque.sim.many import Failure, Kind, try_seed

pytestmark = pytest.mark.simulation

STEPS = 6_000


@pytest.mark.complains(
    "clock_in_doubt node=*; nothing is deleted by age meanwhile",
    "clock_believed node=*: what is old is deleted again",
)
@pytest.mark.parametrize("seed", [2, 3, 5, 17])
def test_what_is_young_survives_wrong_clocks(seed: int) -> None:
    result = try_seed(seed, STEPS, Kind.CLOCKS)
    assert not isinstance(result, Failure), result.trace
    assert result.counts["clocks set wrong"] > 0
