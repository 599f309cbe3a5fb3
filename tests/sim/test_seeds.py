"""Whole clusters under random faults: every seed keeps every promise."""

import pytest
from _pytest.mark import ParameterSet

from kafkaesque.sim.many import Failure, try_seed
from kafkaesque.sim.run import STEPS

CHUNKS = 30
SHORT_CHUNKS = 10
"""Those of `make test`; the others are long."""
SEEDS_PER_CHUNK = 12


def chunks(count: int, short: int) -> list[ParameterSet]:
    """Return the numbers of all chunks, marked as long where they are too many for `make test`."""
    return [
        pytest.param(chunk, marks=() if chunk < short else pytest.mark.long)
        for chunk in range(count)
    ]


def told(failures: list[Failure]) -> str:
    """What failed, and the command that repeats it."""
    return "\n".join(f"{failure.error}\n    {failure.command}" for failure in failures)


@pytest.mark.simulation
@pytest.mark.requirement("LOG-4")
@pytest.mark.requirement("REP-4")
@pytest.mark.parametrize("chunk", chunks(CHUNKS, SHORT_CHUNKS))
@pytest.mark.complains("damage_found partition=group-* offset=*")
def test_clusters_keep_their_promises_under_all_faults(chunk: int) -> None:
    first = chunk * SEEDS_PER_CHUNK
    results = [try_seed(seed, STEPS) for seed in range(first, first + SEEDS_PER_CHUNK)]
    failures = [result for result in results if isinstance(result, Failure)]
    assert not failures, told(failures)


def test_a_failed_seed_reports_its_error_and_the_command_that_repeats_it() -> None:
    text = told([Failure(seed=123, error="Violation: two leaders", trace="")])
    assert "Violation: two leaders" in text
    assert "kafkaesque sim 123" in text
