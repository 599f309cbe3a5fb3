"""Planted bugs in deletion by age; seeds with wrong clocks, or a test, should notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_CLOCKS = "kafkaesque.broker.cluster.wall_clocks:WallClocks"
_KEEPER = "kafkaesque.broker.cluster.housekeeper:Housekeeper"

CLOCK_MUTANTS = (
    Mutant(
        name="old-looking records are deleted even if the clock is untrusted",
        target=f"{_CLOCKS}.ages",
        old="self.doubt is None",
        new="True",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="expiry is judged by an unchecked clock",
        target=f"{_KEEPER}._delete",
        old="ages=self.clocks.ages,",
        new="ages=self.clocks.ages"
        " and Ages(now_ms=self._clock.now_ms(), leaps=self.clocks.ages.leaps),",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="setting a slow clock forward makes records older",
        target="kafkaesque.ages:Ages.of",
        old="if stamp_ms <= leap.before_ms",
        new="if False",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="only records stamped right before a clock jump are spared",
        target=f"{_CLOCKS}._notice_jump",
        old="self._leaps, self._latest_ms, jump_ms",
        new="self._leaps, wall_ms - jump_ms, jump_ms",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="a backward clock jump does not cancel the forward jumps",
        target="kafkaesque.broker.cluster.wall_clocks:with_jump",
        old="while jump_ms < 0 and leaps:",
        new="while False:",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="a record's age is measured by the clock that stamped it",
        target="kafkaesque.log.retention:age_ms",
        old="is_plausible and is_append_time and",
        new="False and",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="producers expire when the clock jumps ahead",
        target="kafkaesque.broker.partition.producers:Producers.expire",
        old="ages.of(known.seen_ms)",
        new="ages.now_ms - known.seen_ms",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="transactional ids expire when the clock jumps ahead",
        target="kafkaesque.machines.transactions.transactions:Transactions.expire",
        old="ages.of(known.changed_ms)",
        new="ages.now_ms - known.changed_ms",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="followers delete on their own",
        target=f"{_KEEPER}._look_after",
        old="deletes and watched.replica.is_serving",
        new="deletes",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="times received before a clock jump confirm it",
        target=f"{_CLOCKS}._notice_jump",
        old="self._heard.clear()",
        new="pass",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="a clock that one broker contradicts and none confirms is trusted",
        target=f"{_CLOCKS}._judge",
        old="2 * (1 + near) > 1 + len(others)",
        new="True",
        world=Kind.CLOCKS,
    ),
)
