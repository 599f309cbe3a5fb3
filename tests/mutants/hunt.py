"""Looks for what notices a planted bug: what noticed it last time, then tests, and then seeds.

First all tests run without a bug, each file in a separate process. That shows how long a test
takes, and which places of planted bugs it reaches: a test that does not reach the place of a bug
cannot notice it. Of those that do, the quick ones come first, and of these the ones that reach the
fewest places, since they are the most specific.

Random seeds come last, because they are slow. Some broken rules they miss however many are run: a
cut mark that is replaced by a batch of an older term needs a crash at one of a few disk operations.
Those are caught by the scenarios, or by the tests that let the power fail inside every disk
operation of a scripted run.

A test that fails without any bug notices nothing: it does not count, and makes the whole hunt fail.
"""

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kafkaesque.sim.many import Failure, try_seed
from tests.mutants.mutation import Mutant
from tests.mutants.playing import Hangs, Played, limited, play

TESTS = Path(__file__).parents[1]
SCRIPTED = (
    "scenarios/test_scenarios.py",
    "machines/test_broker_settings.py",
    "sim/test_broker_live_settings.py",
    "broker/test_old_copies.py",
    "broker/test_housekeeper.py",
    "broker/test_wall_clocks.py",
    "broker/test_repair_ranges.py",
    "broker/test_admission.py",
    "server/test_cluster.py",
    "server/test_catalog_behind.py",
    "broker/test_giving_up.py",
    "broker/test_copy_query.py",
    "sim/test_broker_refills.py",
    "broker/test_damage.py",
    "broker/test_old_copy_restart.py",
    "broker/test_unreadable.py",
    "broker/test_damaged_machines.py",
    "broker/test_machine_host.py",
    "broker/test_machine_follower.py",
    "log/test_segment_repair.py",
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
    "machines/test_share_assignor.py",
    "machines/test_share_group.py",
    "machines/test_share_partition.py",
    "machines/test_share_states.py",
    "broker/test_partition_shares.py",
    "server/test_share_administration.py",
    "machines/test_transaction.py",
    "machines/test_transactions.py",
    "sim/test_broker_growth.py",
    "sim/test_broker_care.py",
    "machines/test_voter_choice.py",
    "machines/test_move_planning.py",
    "sim/test_broker_moves.py",
    "machines/test_catalog_moves.py",
    "machines/test_catalog_decider.py",
    "broker/test_catalog_coordinator.py",
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
    "broker/test_leader_table.py",
    "broker/test_machine_follower.py",
    "broker/test_refusals.py",
    "broker/test_replica.py",
    "broker/test_gathering.py",
    "broker/test_store.py",
    "broker/test_scrubber.py",
    "broker/test_state_transfer.py",
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
    "broker/test_partition_shares.py",
)
"""The tests to try: none that takes long or starts processes."""

BATCH_FIRST = 8
BATCH_GROWTH = 4
"""Starting a run of tests costs as much as some tests, so each run is larger than the last."""

QUICK_SECONDS = 1 / 32
"""Differences between tests quicker than this do not matter."""

_SEED = re.compile(r"seed (\d+)")


class FailsAnyway(Exception):
    """A seed fails without a planted bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test and its file."""

    __test__ = False  # it is not a test itself

    file: str
    name: str
    """Its pytest name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How a test behaves without a bug."""

    test: Test
    played: Played


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What noticed a mutant, and how much was tried until then."""

    by: str = ""
    tests: int = 0
    seeds: int = 0

    @property
    def is_caught(self) -> bool:
        """Whether anything noticed it at all."""
        return bool(self.by)


def misfits(mutants: Iterable[Mutant]) -> dict[str, str]:
    """Return the names of mutants that no longer fit the code, and the reasons."""
    found = {}
    for mutant in mutants:
        try:
            with mutant.planted():
                pass
        except (AssertionError, AttributeError, ImportError) as error:
            found[mutant.name] = str(error)
    return found


def survey(file: str, mutants: Iterable[Mutant]) -> list[Seen]:
    """Run one test file without a bug, and record which mutants' targets each test reaches."""
    reached: set[str] = set()
    with ExitStack() as watches:
        for mutant in {mutant.target: mutant for mutant in mutants}.values():
            watches.enter_context(mutant.watched(reached))
        played = play([TESTS / file], reached=reached)
    return [Seen(test=Test(file=file, name=one.test), played=one) for one in played]


def in_order(mutant: Mutant, seen: Sequence[Seen]) -> list[Test]:
    """Return the tests that may notice a bug, the best first.

    What the tests of a file share is only reached by the first of them. So if one test of a file
    reaches the place, all tests of the file are tried, if need be.
    """
    near = [one for one in seen if mutant.target in one.played.reached]
    files = {one.test.file for one in near}
    beside = [one for one in seen if one.test.file in files and one not in near]
    ordered = [*sorted(near, key=_cost), *sorted(beside, key=_cost)]
    return [one.test for one in ordered if one.played.is_green]


def _cost(one: Seen) -> tuple[int, int, float]:
    times_quick = max(one.played.seconds / QUICK_SECONDS, 1.0)
    return int(math.log2(times_quick)), len(one.played.reached), one.played.seconds


def hunt(mutant: Mutant, tests: Sequence[Test], seeds: range) -> Catch:
    """Plant a bug and try these tests, and then these seeds, until one notices it.

    Raises FailsAnyway if a seed fails without the bug, too.
    """
    tried = 0
    for batch in _batches(tests):
        left = batch
        while left:
            with mutant.planted():
                played = _play(left)
            tried += len(played)
            red = next((one.test for one in played if not one.is_green), "")
            if not red:
                break
            blamed = [one for one in left if one.name == red or one.name.startswith(f"{red}::")]
            if all(one.is_green for one in _play(blamed)):
                return Catch(by=red, tests=tried)
            left = left[
                left.index(blamed[-1]) + 1 :
            ]  # a flaky test: it sometimes fails without the bug, too
    for count, seed in enumerate(seeds, start=1):
        with mutant.planted():
            is_noticed = _fails(seed, mutant)
        if is_noticed:
            if _fails(seed, mutant):
                raise FailsAnyway(f"seed {seed} of {mutant.world.value}")
            return Catch(by=f"seed {seed}", tests=tried, seeds=count)
    return Catch(tests=tried, seeds=len(seeds))


def seed_of(killer: str) -> int | None:
    """Return the seed that `Catch.by` names, None if it names a test."""
    found = _SEED.fullmatch(killer)
    return int(found[1]) if found else None


def _batches(tests: Sequence[Test]) -> Iterator[Sequence[Test]]:
    size = BATCH_FIRST
    while tests:
        yield tests[:size]
        tests = tests[size:]
        size *= BATCH_GROWTH


def _play(tests: Sequence[Test]) -> list[Played]:
    files = dict.fromkeys(TESTS / one.file for one in tests)
    return play([*files], [one.name for one in tests], is_first_enough=True)


def _fails(seed: int, mutant: Mutant) -> bool:
    """Run one seed of the mutant's world; one that does not end has failed."""
    logging.getLogger("kafkaesque").setLevel(logging.CRITICAL + 1)  # brokers log their problems
    try:
        with limited():
            return isinstance(try_seed(seed, mutant.world.steps, mutant.world), Failure)
    except Hangs:
        return True
