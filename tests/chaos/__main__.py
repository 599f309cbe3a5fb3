"""`make chaos`: plays every scenario that this machine allows, and prints the table."""

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos import stories
from tests.chaos.scenario import HEAD, Scenario, line
from tests.chaos.stage import Row


def play(one: Scenario, keep: Path | None) -> Row | str:
    """Play one scenario; what failed is printed, and its files are kept."""
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


def _end(number: int, frame: object) -> None:
    """Let a run that is told to end clear away its brokers, mounts and namespaces."""
    sys.exit(128 + number)


def main() -> int:
    """Play all scenarios, or those whose name contains the argument."""
    signal.signal(signal.SIGTERM, _end)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="play only scenarios with these words in the name")
    parser.add_argument("--times", type=int, default=1, help="how often each is played")
    parser.add_argument("--keep", type=Path, help="a folder for the files of all runs")
    given = parser.parse_args()
    wanted = [one for one in stories.ALL if " ".join(given.words) in one.name] * given.times
    rows = []
    for one in wanted:
        row = play(one, given.keep)
        rows.append((one, row))
        sys.stdout.write(line(one, row) + "\n")
        sys.stdout.flush()
    sys.stdout.write("\n" + "\n".join([HEAD, *(line(one, row) for one, row in rows)]) + "\n")
    return 0 if all(is_good(one, row) for one, row in rows) else 1


def is_good(one: Scenario, row: Row | str) -> bool:
    """Whether nothing was found, in enough; what could not be played says nothing."""
    if isinstance(row, str):
        return row.startswith("not played")
    return row.verdict.is_clean and not one.shortfalls(row)


if __name__ == "__main__":
    sys.exit(main())
