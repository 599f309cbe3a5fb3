"""Members of a consumer group on simulated clusters: their checks work, and they settle."""

from dataclasses import replace

import pytest

from kafkaesque.config import BrokerConfig
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.groups.consumer_commands import ConsumerTold
from kafkaesque.sim.broker_members import SESSION_MS, GivenOut
from kafkaesque.sim.broker_run import run_brokers
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.checks import Violation
from tests.mutants.mutation import Mutant
from tests.mutants.planted_cluster_members import CLUSTER_MEMBER_MUTANTS

SEEDS = 12
STEPS = 6_000
PLACE = (b"t", 0)
HASTY = BrokerConfig(
    groups=GroupConfig(
        offsets_partitions=1,
        consumer_session_timeout_ms=SESSION_MS,
        consumer_heartbeat_ms=100,
        consumer_hasty_heartbeat_ms=50,
    )
)
SETTINGS = BrokerSettings(
    members=4, faults=("kills", "cuts"), pause_mean=400, work_pause_max=100, broker=HASTY
)

HARSH = replace(SETTINGS, pause_mean=120)


def told(epoch: int) -> ConsumerTold:
    return ConsumerTold(member_id="", epoch=epoch, assigned={PLACE})


@pytest.mark.parametrize("seed", [4, 10])
def test_members_share_the_partitions_while_coordinators_die(seed: int) -> None:
    report = run_brokers(seed, STEPS, SETTINGS)
    assert report.counts["members told"] > 100
    assert report.counts["members' commits"] > 0
    assert report.counts["members fenced"] > 0


def test_a_partition_assigned_to_two_members_in_one_epoch_is_noticed() -> None:
    out = GivenOut()
    out.told("one", told(3))
    out.told("one", told(3))
    out.told("two", told(4))
    with pytest.raises(Violation, match="given to two and to one in epoch 4"):
        out.told("one", told(4))


def test_a_member_whose_partition_was_reassigned_has_a_stale_epoch() -> None:
    out = GivenOut()
    out.told("one", told(3))
    assert not out.is_over("one", 3, PLACE)
    out.told("two", told(4))
    assert out.is_over("one", 3, PLACE)
    assert not out.is_over("two", 4, PLACE)


@pytest.mark.long
@pytest.mark.parametrize("mutant", CLUSTER_MEMBER_MUTANTS, ids=lambda mutant: mutant.name)
def test_seeds_notice_a_planted_bug(mutant: Mutant) -> None:
    with mutant.planted(), pytest.raises(Violation):
        for seed in range(SEEDS):
            run_brokers(seed, STEPS, HARSH)
            run_brokers(seed, STEPS, SETTINGS)
