"""Planted bugs in what is deleted by age; seeds with wrong clocks, or a test, are to notice."""

from kafkaesque.sim.many import Kind
from tests.mutants.mutation import Mutant

_CLOCKS = "kafkaesque.broker.wall_clocks:WallClocks"
_KEEPER = "kafkaesque.broker.housekeeper:Housekeeper"

CLOCK_MUTANTS = (
    Mutant(
        name="what looks old is deleted whatever the clock is worth",
        target=f"{_CLOCKS}.ages",
        old="self.doubt is None",
        new="True",
        world=Kind.CLOCKS,
    ),
    Mutant(
        name="what has expired is told by a clock that nobody has looked at",
        target=f"{_KEEPER}._delete",
        old="ages=self.clocks.ages,",
        new="ages=Ages(now_ms=self._clock.now_ms()) if self.clocks.is_sound else None,",
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
