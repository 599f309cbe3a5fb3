"""Planted bugs in what is deleted by age; seeds with wrong clocks, or a test, are to notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_CLOCKS = "kafkaesque.broker.cluster.wall_clocks:WallClocks"
_KEEPER = "kafkaesque.broker.cluster.housekeeper:Housekeeper"

CLOCK_MUTANTS = (
    Mutant(
        name="what looks old is deleted whatever the clock is worth",
        target=f"{_CLOCKS}.ages",
        old="self.doubt is None",
        new="True",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="what has expired is judged by a clock that nobody has checked",
        target=f"{_KEEPER}._delete",
        old="ages=self.clocks.ages,",
        new="ages=self.clocks.ages"
        " and Ages(now_ms=self._clock.now_ms(), leaps=self.clocks.ages.leaps),",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="what a clock that was behind leaps over makes records older",
        target="kafkaesque.ages:Ages.of",
        old="if stamp_ms <= leap.before_ms",
        new="if False",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="only what was stamped right before a leap of the clock is spared",
        target=f"{_CLOCKS}._notice_jump",
        old="self._leaps, self._latest_ms, jump_ms",
        new="self._leaps, wall_ms - jump_ms, jump_ms",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="a jump back of the clock leaves the leaps that it undoes",
        target="kafkaesque.broker.cluster.wall_clocks:with_jump",
        old="while jump_ms < 0 and leaps:",
        new="while False:",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="a record is as old as the clock of the broker said that took it",
        target="kafkaesque.log.retention:age_ms",
        old="is_plausible and is_append_time and",
        new="False and",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="producers are forgotten for time that only the clock leapt over",
        target="kafkaesque.broker.partition.producers:Producers.expire",
        old="ages.of(known.seen_ms)",
        new="ages.now_ms - known.seen_ms",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="ids are forgotten for time that only the clock leapt over",
        target="kafkaesque.machines.transactions.transactions:Transactions.expire",
        old="ages.of(known.changed_ms)",
        new="ages.now_ms - known.changed_ms",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="followers delete by themselves",
        target=f"{_KEEPER}._look_after",
        old="deletes and watched.replica.is_serving",
        new="deletes",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="what others told before a jump of the clock confirms it",
        target=f"{_CLOCKS}._notice_jump",
        old="self._heard.clear()",
        new="pass",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="a clock is believed that one other broker contradicts and none confirms",
        target=f"{_CLOCKS}._judge",
        old="2 * (1 + near) > 1 + len(others)",
        new="True",
        world=Kind.CLOCKS,
    ),
)
