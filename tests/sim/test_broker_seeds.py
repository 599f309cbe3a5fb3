"""Clusters of whole brokers under random faults: every seed keeps every promise."""

import pytest

from kafkaesque.sim.broker_run import STEPS
from kafkaesque.sim.many import Failure, Kind, try_seed
from tests.sim.test_seeds import chunks, told

CHUNKS = 12
SHORT_CHUNKS = 4
SEEDS_PER_CHUNK = 5


@pytest.mark.requirement("REP-2")
@pytest.mark.simulation
@pytest.mark.complains(
    # A broker that was down while a topic was deleted, and then got the whole catalog.
    "folders_of_no_topic count=* folders=*",
    "replica_stopped partition=* reason=* could not be read or written: a simulated sync failed*",
)
@pytest.mark.parametrize("chunk", chunks(CHUNKS, SHORT_CHUNKS))
def test_clusters_of_brokers_keep_their_promises_under_all_faults(chunk: int) -> None:
    first = chunk * SEEDS_PER_CHUNK
    seeds = range(first, first + SEEDS_PER_CHUNK)
    results = [try_seed(seed, STEPS, Kind.BROKERS) for seed in seeds]
    failures = [result for result in results if isinstance(result, Failure)]
    assert not failures, told(failures)


def test_a_failed_seed_of_brokers_names_its_world() -> None:
    failure = Failure(seed=5, error="", trace="", kind=Kind.BROKERS)
    assert failure.command == "kafkaesque sim 5 --world brokers"


def test_a_seed_of_brokers_is_the_same_run_every_time() -> None:
    first = try_seed(3, 2_000, Kind.BROKERS)
    assert try_seed(3, 2_000, Kind.BROKERS) == first
