"""`make mutants`: plants each bug in turn and shows what noticed it, and how long it took."""

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from tests.mutants import killers
from tests.mutants.crew import WorkerDied, each_apart
from tests.mutants.hunt import (
    SCRIPTED,
    Catch,
    FailsAnyway,
    Seen,
    Test,
    hunt,
    in_order,
    misfits,
    seed_of,
    survey,
)
from tests.mutants.mutation import Mutant
from tests.mutants.planting import PLANTED

SEEDS_MAX = 200
CAUGHT, GOT_AWAY, FAILS_ANYWAY = range(3)
"""The exit codes of the program."""


@dataclass(slots=True, kw_only=True)
class Hunt:
    """The results so far."""

    console: Console
    chosen: Sequence[Mutant]
    """All of them can be planted."""
    catches: dict[str, Catch] = field(default_factory=dict)
    """By the name of the bug."""
    seconds: dict[str, float] = field(default_factory=dict)
    seen: dict[str, list[Seen]] = field(default_factory=dict)
    """By the test file."""
    cpu_seconds: float = 0.0
    """Of all processes together."""

    def survey(self, files: Iterable[str]) -> None:
        """Run test files without a bug."""
        works = [(file, self.chosen) for file in dict.fromkeys(files) if file not in self.seen]
        started = time.monotonic()
        for (file, _), done in each_apart(survey, works):
            self.seen[str(file)] = done.result
            self.cpu_seconds += done.cpu_seconds
            for one in done.result:
                if not one.played.is_green:
                    self.console.print(
                        f"fails without a bug: {one.test.name}", highlight=False, soft_wrap=True
                    )
        if works:
            took = f"{time.monotonic() - started:.0f} s"
            self.console.print(f"{len(works)} files of tests played without a bug: {took}")

    def look_again(self, known: Mapping[str, str]) -> None:
        """Try what noticed each bug last time."""
        files = [file for killer in known.values() for file in SCRIPTED if is_in(killer, file)]
        self.survey(files)
        tests = {one.test.name: one for one in self._all_seen if one.played.is_green}
        works: list[tuple[Mutant, Sequence[Test], range]] = []
        for mutant in self.chosen:
            killer = known.get(mutant.name, "")
            seed = seed_of(killer)
            if seed is not None:
                works.append((mutant, (), range(seed, seed + 1)))
            elif killer in tests:
                works.append((mutant, (tests[killer].test,), range(0)))
        self._do(works)

    def look_in_seeds(self, seeds: int) -> None:
        """Try seeds alone."""
        self._do([(mutant, (), range(seeds)) for mutant in self.chosen])

    def look_everywhere(self, seeds: int) -> None:
        """Try all tests, and then seeds, for the bugs not caught yet."""
        left = [mutant for mutant in self.chosen if not self.is_caught(mutant)]
        if left:
            self.survey(SCRIPTED)
            self._do([(one, in_order(one, self._all_seen), range(seeds)) for one in left])

    def is_caught(self, mutant: Mutant) -> bool:
        """Whether something noticed a bug."""
        return mutant.name in self.catches and self.catches[mutant.name].is_caught

    @property
    def fails_anyway(self) -> bool:
        """Whether a test fails without any bug."""
        return not all(one.played.is_green for one in self._all_seen)

    @property
    def _all_seen(self) -> list[Seen]:
        return [one for found in self.seen.values() for one in found]

    def _do(self, works: Sequence[tuple[Mutant, Sequence[Test], range]]) -> None:
        for work, done in each_apart(hunt, works):
            mutant, catch = work[0], done.result
            assert isinstance(mutant, Mutant)
            self.catches[mutant.name] = catch
            self.seconds[mutant.name] = self.seconds.get(mutant.name, 0.0) + done.seconds
            self.cpu_seconds += done.cpu_seconds
            found = f"by {catch.by}" if catch.is_caught else "by nothing yet"
            count = len(self.catches)
            line = f"{count:3}  {done.seconds:6.1f} s  {mutant.name}: {found}"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def is_in(killer: str, file: str) -> bool:
    """Whether a test, by its pytest name, is in a file of `SCRIPTED`."""
    return killer.partition("::")[0] == f"tests/{file}"


def main() -> int:
    """Hunt them all; exit 1 if one is not caught, 2 if something fails without any of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="seeds to try for each")
    parser.add_argument("--only", action="append", help="only those with this in the name")
    parser.add_argument("--afresh", action="store_true", help="do not begin with killers.toml")
    parser.add_argument("--by-seeds", action="store_true", help="try seeds alone, and no tests")
    parser.add_argument("--update", action="store_true", help="rewrite killers.toml")
    options = parser.parse_args()
    wanted = options.only or [""]
    chosen = [mutant for mutant in PLANTED if any(words in mutant.name for words in wanted)]
    if not chosen:
        parser.error("there is no such bug")
    known = killers.read()
    console = Console()
    console.print(f"{len(chosen)} planted bugs")
    started = time.monotonic()
    amiss = misfits(chosen)
    for name, why in amiss.items():
        console.print(
            f"cannot be planted: {name}: {why}", highlight=False, markup=False, soft_wrap=True
        )
    chosen = [mutant for mutant in chosen if mutant.name not in amiss]
    hunted = Hunt(console=console, chosen=chosen)
    try:
        if options.by_seeds:
            hunted.look_in_seeds(options.seeds)
        else:
            if not options.afresh:
                names = {mutant.name for mutant in chosen}
                hunted.look_again({name: by for name, by in known.items() if name in names})
            hunted.look_everywhere(options.seeds)
    except (FailsAnyway, WorkerDied) as error:
        console.print(f"{error} fails without a planted bug: fix that first")
        return FAILS_ANYWAY
    console.print(_table(hunted, time.monotonic() - started))
    console.print(f"{hunted.cpu_seconds:.0f} s of one core")
    if options.by_seeds:
        pass  # that seeds also notice it is no reason to try them first
    elif options.update:
        killers.write(_merged(known, hunted.catches))
    elif any(known.get(name) != catch.by for name, catch in hunted.catches.items()):
        console.print("killers.toml is out of date: python -m tests.mutants --update")
    if not all(map(hunted.is_caught, chosen)):
        return GOT_AWAY
    return FAILS_ANYWAY if amiss or hunted.fails_anyway else CAUGHT


def _merged(known: Mapping[str, str], catches: Mapping[str, Catch]) -> dict[str, str]:
    """Return what noticed each bug that still exists, now or else last time."""
    found = {**known, **{name: catch.by for name, catch in catches.items()}}
    return {mutant.name: by for mutant in PLANTED if (by := found.get(mutant.name))}


def _table(hunted: Hunt, seconds: float) -> Table:
    table = Table(title="Planted bugs", title_justify="left")
    table.add_column("rule broken")
    table.add_column("caught by", overflow="fold")
    for title in ("tests", "seeds", "seconds"):
        table.add_column(title, justify="right")
    for mutant in hunted.chosen:
        catch = hunted.catches[mutant.name]
        counts = (str(catch.tests), str(catch.seeds), f"{hunted.seconds[mutant.name]:.1f}")
        table.add_row(mutant.name, catch.by or "NOT CAUGHT", *counts)
    caught = sum(map(hunted.is_caught, hunted.chosen))
    table.add_section()
    table.add_row("caught", f"{caught} of {len(hunted.chosen)}", "", "", f"{seconds:.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
