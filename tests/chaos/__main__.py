"""`make chaos`: plays every scenario that this machine allows, and prints the table."""

import argparse
import shutil
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
    folder = Path(tempfile.mkdtemp(prefix="kafkaesque-chaos-"))
    try:
        row = one.run(folder)
    except (AssertionError, OSError, TimeoutError) as error:
        sys.stdout.write(f"{one.name}: {error}\nits files are in {folder}\n")
        return f"FAILED: {type(error).__name__}"
    if row.verdict.is_clean:
        shutil.rmtree(folder)
    else:
        sys.stdout.write(f"{row.verdict.report()}\nits files are in {folder}\n")
    return row


def main() -> int:
    """Play all scenarios, or those whose name contains the argument."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="play only scenarios with these words in the name")
    parser.add_argument("--times", type=int, default=1, help="how often each is played")
    given = parser.parse_args()
    wanted = [one for one in stories.ALL if " ".join(given.words) in one.name] * given.times
    rows = []
    for one in wanted:
        row = play(one, None)
        rows.append((one, row))
        sys.stdout.write(line(one, row) + "\n")
        sys.stdout.flush()
    sys.stdout.write("\n" + "\n".join([HEAD, *(line(one, row) for one, row in rows)]) + "\n")
    return 0 if all(is_good(row) for _, row in rows) else 1


def is_good(row: Row | str) -> bool:
    """Whether nothing was found; what could not be played says nothing."""
    return row.startswith("not played") if isinstance(row, str) else row.verdict.is_clean


if __name__ == "__main__":
    sys.exit(main())
