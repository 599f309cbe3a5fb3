"""Settings of brokers are changed while everything breaks."""

import pytest

from kafkaesque.sim.many import Failure, Kind, try_seed

pytestmark = pytest.mark.simulation

STEPS = 6_000


@pytest.mark.parametrize("seed", range(3))
def test_what_was_set_last_holds_in_the_end(seed: int) -> None:
    result = try_seed(seed, STEPS, Kind.SETTINGS)
    assert not isinstance(result, Failure), result.trace
    assert result.counts["settings changed"] > 0
