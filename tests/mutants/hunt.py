"""Looks for what notices a planted bug: seeds, then what is written by hand.

Random seeds miss some broken rules however many are run: a cut mark that is replaced by a batch of
an older term needs a crash at one of a few disk operations. Those are caught by the scenarios, or
by the tests that let the power fail inside every disk operation of a scripted life.

What fails without any bug notices nothing: it ends the whole hunt.
"""

from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

from kafkaesque.sim.many import Failure, try_seed
from tests.mutants.mutation import Mutant
from tests.scenarios.runner import play

TESTS = Path(__file__).parents[1]
SCENARIOS = TESTS / "scenarios"
SCRIPTED = (
    "machines/test_broker_settings.py",
    "sim/test_broker_live_settings.py",
    "broker/test_housekeeper.py",
    "broker/test_wall_clocks.py",
    "broker/test_ranges.py",
    "broker/test_admission.py",
    "server/test_cluster.py",
    "server/test_catalog_behind.py",
    "broker/test_giving_up.py",
    "broker/test_copies.py",
    "sim/test_broker_refills.py",
    "broker/test_damage.py",
    "broker/test_unreadable.py",
    "broker/test_damaged_machines.py",
    "log/test_mending.py",
    "sim/test_broker_repairs.py",
    "sim/test_forgetful_seeds.py",
    "sim/test_broker_world.py",
    "sim/test_broker_old_copies.py",
    "sim/test_broker_tails.py",
    "broker/test_salvage.py",
    "sim/test_broker_rejoin.py",
    "raft/test_raft.py",
    "sim/test_cluster_transactions.py",
    "machines/test_sinks.py",
    "machines/test_transaction.py",
    "machines/test_transactions.py",
    "sim/test_broker_growth.py",
    "sim/test_broker_care.py",
    "machines/test_voter_choice.py",
    "machines/test_planning.py",
    "sim/test_broker_moves.py",
    "machines/test_catalog_moves.py",
    "sim/test_cluster_acks.py",
    "sim/test_cluster_ends.py",
    "sim/test_cluster_pipelines.py",
    "server/test_cluster_truth.py",
    "server/test_transactions.py",
    "broker/test_transactions.py",
    "broker/test_transaction_coordinator.py",
    "broker/test_group_coordinator.py",
    "broker/test_watermark.py",
    "broker/test_partition_reads.py",
    "broker/test_leaders.py",
    "broker/test_machine_follower.py",
    "broker/test_refusals.py",
    "broker/test_replica.py",
    "broker/test_gathering.py",
    "broker/test_store.py",
    "broker/test_scrub.py",
    "broker/test_installing.py",
    "broker/test_forgetting.py",
    "broker/test_producers.py",
    "broker/test_producer_keeper.py",
    "log/test_marks.py",
    "log/test_partition_log.py",
    "log/test_partition_log_restart.py",
    "log/test_crash_points.py",
    "log/test_segments_recovery.py",
    "log/test_segments_changes.py",
    "log/test_seals.py",
    "log/test_segments_crashes.py",
    "log/test_compaction.py",
    "log/test_retention.py",
    "log/test_stability.py",
    "log/test_journal.py",
    "log/test_journal_rewrite.py",
    "log/test_journal_records.py",
    "raft/test_leadership.py",
    "raft/test_moving.py",
    "raft/test_roster.py",
    "net/test_outbox.py",
    "net/test_pieces.py",
    "sim/test_narrow.py",
    "broker/test_log_settings.py",
)
"""Tests that play a whole life against every way to end it; the quick ones come first."""


_PYTEST = ("-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestWarning")
"""Our own plugin is imported already, of which pytest warns."""


class FailsAnyway(Exception):
    """A seed, a scenario or a test fails without a planted bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What noticed a mutant, after how many seeds."""

    mutant: Mutant
    by: str
    seeds: int
    error: str

    @property
    def is_caught(self) -> bool:
        """Whether anything noticed it at all."""
        return bool(self.by)


def hunt(mutant: Mutant, seeds_max: int, steps: int | None = None) -> Catch:
    """Run seeds with the bug planted until one fails, then scenarios, then scripted lives.

    Raises FailsAnyway if what would notice the bug is no judge of it.
    """
    if steps is None:
        steps = mutant.world.steps
    for seed in range(seeds_max):
        with mutant.planted():
            result = try_seed(seed, steps, mutant.world)
        if isinstance(result, Failure):
            if isinstance(try_seed(seed, steps, mutant.world), Failure):
                raise FailsAnyway(f"seed {seed} of {mutant.world.value}")
            return Catch(mutant=mutant, by="seed", seeds=seed + 1, error=result.error)
    for path in sorted(SCENARIOS.glob("*.txt")):
        with mutant.planted():
            noticed = _play(path)
        if noticed:
            if _play(path):
                raise FailsAnyway(path.stem)
            return Catch(mutant=mutant, by=path.stem, seeds=seeds_max, error=noticed)
    for name in SCRIPTED:
        demand_success(name)
        with mutant.planted():
            is_noticed = _fails(TESTS / name)
        if is_noticed:
            return Catch(mutant=mutant, by=name, seeds=seeds_max, error="a test fails")
    return Catch(mutant=mutant, by="", seeds=seeds_max, error="")


@cache
def demand_success(name: str) -> None:
    """Run one module of tests without a bug, once; raises FailsAnyway."""
    if _fails(TESTS / name):
        raise FailsAnyway(name)


def _play(path: Path) -> str:
    """Return what is different in a scenario now; nothing if it runs as written."""
    text = path.read_text()
    try:
        played = play(text)
    except Exception as error:  # noqa: BLE001 - a scenario that breaks has noticed
        return f"{type(error).__name__}: {error}"
    return "" if played == text else "the trace differs"


def _fails(path: Path) -> bool:
    """Run one module of tests in this process, where the bug is planted."""
    with redirect_stdout(StringIO()):
        code = pytest.main([str(path), "-q", "-x", *_PYTEST])
    return code is not pytest.ExitCode.OK
