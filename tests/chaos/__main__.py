"""`make chaos`: plays every scenario that this machine allows, and prints the table.

With `--mutant` a known bug is planted in the brokers, and each scenario is repeated until it is
found that acknowledged, committed or accepted records are lost or come again: finding it is
success, not finding it is failure.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.chaos import stories
from tests.chaos.findings import Kind
from tests.chaos.scenario import HEAD, Scenario, line
from tests.chaos.stage import Row
from tests.mutants.planting import EVERY

LOSSES = {
    *(Kind.LOST, Kind.TRANSACTION_LOST, Kind.TRANSACTION_TORN),
    *(Kind.ACCEPTED_AGAIN, Kind.DELIVERED_AGAIN, Kind.NEVER_ACCEPTED, Kind.NOT_DRAINED),
}
RUNS_MAX = 10


def play(one: Scenario, keep: Path | None) -> Row | str:
    """Play one scenario; print what failed, and keep its files."""
    if one.hindrance:
        return f"not played: {one.hindrance}"
    folder = Path(tempfile.mkdtemp(prefix="kafkaesque-chaos-", dir=keep))
    try:
        row = one.run(folder)
    except (AssertionError, OSError, TimeoutError) as error:
        sys.stdout.write(f"{one.name}: {error}\nits files are in {folder}\n")
        return f"FAILED: {type(error).__name__}"
    if row.verdict.is_clean and keep is None:
        shutil.rmtree(folder)
    else:
        sys.stdout.write(f"{row.verdict.report()}\nits files are in {folder}\n")
    return row


def hunt(one: Scenario, mutant: str, runs: int, keep: Path | None) -> bool:
    """Play one scenario with a planted bug until a loss is found; return whether it was."""
    planted = replace(one, setting=replace(one.setting, mutant=mutant))
    for run in range(1, runs + 1):
        row = play(planted, keep)
        sys.stdout.write(line(one, row) + "\n")
        if isinstance(row, Row) and LOSSES & row.verdict.kinds.keys():
            sys.stdout.write(f"{mutant}: found in run {run}\n")
            return True
    sys.stdout.write(f"{mutant}: NOT FOUND in {runs} runs of: {one.name}\n")
    return False


def _end(number: int, frame: object) -> None:
    """Clean up brokers, mounts and namespaces when a run is terminated."""
    sys.exit(128 + number)


def main() -> int:
    """Play all scenarios, or those whose name contains the argument."""
    signal.signal(signal.SIGTERM, _end)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="play only scenarios with these words in the name")
    parser.add_argument("--times", type=int, default=1, help="how often each is played")
    parser.add_argument("--keep", type=Path, help="a folder for the files of all runs")
    parser.add_argument("--mutant", choices=EVERY, metavar="NAME", help="a bug to find")
    parser.add_argument("--runs", type=int, default=RUNS_MAX, help="in so many runs at most")
    given = parser.parse_args()
    chosen = [one for one in stories.ALL if " ".join(given.words) in one.name]
    if given.mutant:
        hunts = [hunt(one, given.mutant, given.runs, given.keep) for one in chosen]
        return 0 if hunts and all(hunts) else 1
    wanted = chosen * given.times
    rows = []
    for one in wanted:
        row = play(one, given.keep)
        rows.append((one, row))
        sys.stdout.write(line(one, row) + "\n")
        sys.stdout.flush()
    sys.stdout.write("\n" + "\n".join([HEAD, *(line(one, row) for one, row in rows)]) + "\n")
    return 0 if all(is_good(one, row) for one, row in rows) else 1


def is_good(one: Scenario, row: Row | str) -> bool:
    """Whether the run did enough and has no findings; a skipped scenario counts neither way."""
    if isinstance(row, str):
        return row.startswith("not played")
    return row.verdict.is_clean and not one.shortfalls(row)


if __name__ == "__main__":
    sys.exit(main())
