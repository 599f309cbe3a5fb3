"""What a scenario is, and the table of all results."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.faults import missing
from tests.chaos.history import Outcome
from tests.chaos.stage import Row, Setting, Stage
from tests.chaos.workload import SHARER, TRANSACTOR

SENT_MIN = 200
"""Records that must be acknowledged in a run: fewer prove little."""
COMMITTED_MIN = 5
ABORTED_MIN = 1
"""Transactions of a run with transactional producers; on a busy machine the short one ends few."""
ACCEPTED_MIN = 200
"""Records of a queue that must be accepted in a run with a share group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A story of faults, and the classes of bugs that it would reveal."""

    play: Callable[[Stage], None]
    classes: tuple[str, ...]
    setting: Setting
    needs: tuple[str, ...]
    """Programs, and with most of them root; empty for what works everywhere."""
    is_short: bool
    complains: tuple[str, ...]
    """The warnings and errors that its brokers may log, as in `tests/complaints.py`."""

    @property
    def name(self) -> str:
        """Its function's name, as words."""
        return self.play.__name__.replace("_", " ")

    @property
    def hindrance(self) -> str:
        """Why it cannot run on this machine; empty if it can."""
        return missing(*self.needs) if self.needs else ""

    def run(self, folder: Path) -> Row:
        """Play it, and check the history."""
        with Stage(self.setting, folder) as stage:
            self.play(stage)
            stage.wait_for_progress()
            return stage.finish()

    def shortfalls(self, row: Row) -> list[str]:
        """Return what a run had too little of to prove anything, in words."""
        wanted = [
            ("faults", len(row.faults) + row.lost_answers, 1),
            ("records acknowledged", row.verdict.sends[Outcome.OK], SENT_MIN),
            ("answers lost", row.lost_answers, self.setting.answers_lost_min),
        ]
        if TRANSACTOR in self.setting.roles:
            ended = row.verdict.transactions
            wanted.append(("transactions committed", ended[Outcome.OK], COMMITTED_MIN))
            wanted.append(("transactions aborted", ended[Outcome.FAILED], ABORTED_MIN))
        if SHARER in self.setting.roles:
            wanted.append(("records accepted", row.verdict.accepted, ACCEPTED_MIN))
            wanted.append(("records delivered again", row.verdict.redelivered, 1))
        return [f"{count} {what}, not {least}" for what, count, least in wanted if count < least]


SCENARIOS: list[Scenario] = []


def scenario(
    *classes: str,
    setting: Setting | None = None,
    needs: tuple[str, ...] = (),
    is_short: bool = False,
    complains: tuple[str, ...] = (),
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Add a story to the list of all."""

    def add(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SCENARIOS.append(
            Scenario(
                play=play,
                classes=classes,
                setting=setting or Setting(),
                needs=needs,
                is_short=is_short,
                complains=complains,
            )
        )
        return play

    return add


HEAD = (
    f"{'scenario':<73}{'sent':>8}{'unsure':>7}{'read':>9}{'committed':>10}{'aborted':>8}{'accepted':>9}{'again':>6}"
    f"{'faults':>7}{'answers':>8}{'away ms':>9}{'s':>5}  verdict"
)


def line(one: Scenario, row: Row | str) -> str:
    """Return one line of the table; a string says why there is no result."""
    if isinstance(row, str):
        return f"{one.name:<73}{row}"
    sends, ended = row.verdict.sends, row.verdict.transactions
    found = [f"{kind} {count}" for kind, count in row.verdict.kinds.items()]
    found += [f"too little: {shortfall}" for shortfall in one.shortfalls(row)]
    return (
        f"{one.name:<73}{sends[Outcome.OK]:>8}{sends[Outcome.UNKNOWN]:>7}{row.verdict.polled:>9}"
        f"{ended[Outcome.OK]:>10}{ended[Outcome.FAILED]:>8}"
        f"{row.verdict.accepted:>9}{row.verdict.redelivered:>6}"
        f"{len(row.faults):>7}{row.lost_answers:>8}{row.unavailable_ms:>9}{row.seconds:>5.0f}"
        f"  {', '.join(found) or 'clean'}"
    )
