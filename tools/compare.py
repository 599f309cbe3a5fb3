"""Measures figures on an earlier commit and on this tree in turns, and reports what got slower.

`python -m tools.compare COMMIT [ID ...]` runs each bench program several times, alternating between
the two trees, because other load on the machine comes and goes. The median counts. The earlier tree
is in `.cache/compared` and uses this environment, with its own sources first.
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools import figures_page
from tools.figures import chosen, parse
from tools.figures_page import Compare, Figure, Measured
from tools.repository import ROOT

RUNS = 5
WORSE_MAX = 0.05
"""A figure that is worse by more than this share fails the comparison."""

Values = dict[str, list[float]]
"""Measured values of all runs, by figure."""


def checked_out(commit: str) -> Path:
    """Return the folder with the files of a commit; creates it if missing."""
    named = _git("rev-parse", "--short=10", f"{commit}^{{commit}}")
    folder = ROOT / ".cache" / "compared" / named
    if not folder.exists():
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", "--quiet", str(folder), named)
    return folder


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def measure(command: str, tree: Path) -> dict[str, Measured]:
    """Run one bench program on a tree and return its results."""
    python, *words = shlex.split(command)
    python = sys.executable if python == "python" else str(ROOT / python)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(tree)))}
    done = subprocess.run(
        [python, *words], cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(parse(done.stdout, on_machine="", at_commit=""))


def worse_by(figure: Figure, before: float, after: float) -> float:
    """Return by which share a figure got worse; negative if better."""
    change = after / before - 1 if before else 0.0
    return change if figure.compare is Compare.AT_MOST else -change


def report(figures: Sequence[Figure], before: Values, after: Values) -> tuple[list[str], list[str]]:
    """Return a line for each figure, and the ids of those that got too much worse."""
    lines = [f"{'figure':<32}{'before':>14}{'after':>14}{'worse by':>10}   runs from to"]
    worse: list[str] = []
    for figure in figures:
        if figure.id not in before or figure.id not in after:
            continue
        old, new = (statistics.median(values[figure.id]) for values in (before, after))
        share = worse_by(figure, old, new)
        spread = f"{min(after[figure.id]):g} {max(after[figure.id]):g}"
        lines.append(f"{figure.id:<32}{old:>14.6g}{new:>14.6g}{share:>9.1%}   {spread}")
        if share > WORSE_MAX:
            worse.append(figure.id)
    return lines, worse


def value_of(figure: Figure, result: Measured) -> float:
    """Return the value to compare: the ratio if one is required, as it is least disturbed."""
    if figure.compare is Compare.RATIO_AT_LEAST and result.ratio is not None:
        return result.ratio
    return result.measured


def main() -> int:
    """Measure in turns; fail if a figure is worse by more than 5 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the earlier commit")
    parser.add_argument("ids", nargs="*", help="only these figures")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each program on each tree")
    options = parser.parse_args()
    figures = chosen(figures_page.load_figures(), options.ids)
    earlier = checked_out(options.commit)
    before: Values = {}
    after: Values = {}
    for command in dict.fromkeys(figure.command for figure in figures):
        for run in range(options.runs):
            print(f"== {command}, run {run + 1} of {options.runs}", flush=True)
            turns = [(ROOT, after), (earlier, before)]
            for tree, values in turns if run % 2 else turns[::-1]:
                measured = measure(command, tree)
                for figure in figures:
                    if figure.id in measured:
                        value = value_of(figure, measured[figure.id])
                        values.setdefault(figure.id, []).append(value)
    lines, worse = report(figures, before, after)
    print("\n".join(lines))
    for name in worse:
        print(f"compare: {name} is worse by more than {WORSE_MAX:.0%}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
