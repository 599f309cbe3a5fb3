"""Seeds in which voters acknowledge unsynced entries, and a minority loses power."""

import pytest

from kafkaesque.config import RaftConfig
from kafkaesque.sim.run import run_seed
from kafkaesque.sim.settings import Faults, Settings
from kafkaesque.topic_settings import FlushPolicy

STEPS = 3_000


def forgetful(seed: int) -> Settings:
    return Settings(
        nodes=3 + 2 * (seed % 2),
        flush=FlushPolicy.INTERVAL if seed % 3 == 0 else FlushPolicy.OS,
        write_pause_max=10,
        raft=RaftConfig(inflight_max=2),
        faults=Faults(
            pause_mean=150, kills=True, power_losses=True, cuts=True, trims=seed % 2 == 0
        ),
    )


@pytest.mark.parametrize("seed", range(12))
def test_what_a_minority_forgets_is_not_lost(seed: int) -> None:
    report = run_seed(seed, STEPS, forgetful(seed))
    assert report.counts["acknowledged"] > 0


def test_power_is_lost_often_enough_to_matter() -> None:
    reports = [run_seed(seed, STEPS, forgetful(seed)) for seed in (3, 8, 9)]
    assert sum(r.counts.get("power losses that may take something", 0) for r in reports) > 3
