"""What a scenario is, and the table of all that were played."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.faults import missing
from tests.chaos.history import Outcome
from tests.chaos.stage import Row, Setting, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A story of faults, and the classes of bugs that it would show."""

    play: Callable[[Stage], None]
    classes: tuple[str, ...]
    setting: Setting
    needs: tuple[str, ...]
    """Programs, and with most of them root; empty for what works everywhere."""
    is_short: bool

    @property
    def name(self) -> str:
        """Its function's name, as words."""
        return self.play.__name__.replace("_", " ")

    @property
    def hindrance(self) -> str:
        """Why it cannot be played on this machine; empty if it can."""
        return missing(*self.needs) if self.needs else ""

    def run(self, folder: Path) -> Row:
        """Play it, and check the history."""
        with Stage(self.setting, folder) as stage:
            self.play(stage)
            stage.wait_for_progress()
            return stage.finish()


SCENARIOS: list[Scenario] = []


def scenario(
    *classes: str,
    setting: Setting | None = None,
    needs: tuple[str, ...] = (),
    is_short: bool = False,
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Put a story into the list of all."""

    def add(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SCENARIOS.append(
            Scenario(
                play=play,
                classes=classes,
                setting=setting or Setting(),
                needs=needs,
                is_short=is_short,
            )
        )
        return play

    return add


HEAD = (
    f"{'scenario':<58}{'sent':>8}{'unsure':>7}{'read':>9}"
    f"{'faults':>7}{'away ms':>9}{'s':>5}  verdict"
)


def line(one: Scenario, row: Row | str) -> str:
    """Return one line of the table; a string says why there is no row."""
    if isinstance(row, str):
        return f"{one.name:<58}{row}"
    sends = row.verdict.sends
    kinds = ", ".join(f"{kind} {count}" for kind, count in row.verdict.kinds.items())
    return (
        f"{one.name:<58}{sends[Outcome.OK]:>8}{sends[Outcome.UNKNOWN]:>7}{row.verdict.polled:>9}"
        f"{len(row.faults):>7}{row.unavailable_ms:>9}{row.seconds:>5.0f}  {kinds or 'clean'}"
    )
