"""`make mutants`: plants each bug in turn and shows what noticed it, after how many seeds."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.table import Table

from tests.mutants.hunt import Catch, FailsAnyway, hunt
from tests.mutants.planting import PLANTED

SEEDS_MAX = 200


def main() -> int:
    """Hunt them all; exit 1 if one gets away, 2 if something fails without any of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="seeds to try for each")
    parser.add_argument("--only", default="", help="only mutants whose name contains this")
    options = parser.parse_args()
    chosen = [mutant for mutant in PLANTED if options.only in mutant.name]
    if not chosen:
        parser.error("there is no such bug")
    console = Console()
    console.print(f"{len(chosen)} planted bugs, up to {options.seeds} seeds each, then scripts")
    catches: list[Catch] = []
    try:
        with ProcessPoolExecutor() as pool:
            for catch in pool.map(hunt, chosen, [options.seeds] * len(chosen)):
                catches.append(catch)
                found = f"by {catch.by}" if catch.is_caught else "NOT CAUGHT"
                console.print(f"{len(catches):3}  {catch.mutant.name}: {found}", highlight=False)
    except FailsAnyway as error:
        console.print(f"{error} fails without a planted bug: mend that first")
        return 2
    console.print(_table(catches))
    return 0 if all(catch.is_caught for catch in catches) else 1


def _table(catches: list[Catch]) -> Table:
    table = Table(title="Planted bugs", title_justify="left")
    table.add_column("rule broken")
    table.add_column("caught by")
    table.add_column("seeds", justify="right")
    for catch in catches:
        by = catch.by if catch.is_caught else "NOT CAUGHT"
        seeds = str(catch.seeds) if catch.by == "seed" else f"> {catch.seeds}"
        table.add_row(catch.mutant.name, by, seeds)
    caught = sum(1 for catch in catches if catch.is_caught)
    table.add_section()
    table.add_row("caught", f"{caught} of {len(catches)}", "")
    return table


if __name__ == "__main__":
    sys.exit(main())
