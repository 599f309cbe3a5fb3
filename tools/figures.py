"""Runs the bench programs and stores their results; with `--print` only prints them.

A program prints one JSON line for each of its figures:
`{"figure": "append-16k", "measured": 812.0, "unit": "MB/s", "ratio": 0.71}`; `ratio` may be null,
other lines are shown and ignored. A figure that no program prints keeps its previous value.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools import figures_page
from tools.figures_page import Figure, Measured
from tools.repository import ROOT


def machine() -> str:
    """Describe this machine in a few words: processor, cores, system, Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    cores = os.cpu_count()
    return f"{model}, {cores} cores, {platform.system()}, Python {platform.python_version()}"


def commit() -> str:
    """Return the short name of the commit, with a plus if files differ."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def parse(output: str, *, on_machine: str, at_commit: str) -> Iterator[tuple[str, Measured]]:
    """Yield the figures in a program's output."""
    for line in output.splitlines():
        if not line.startswith('{"figure"'):
            continue
        found = json.loads(line)
        yield (
            found["figure"],
            Measured(
                measured=float(found["measured"]),
                unit=found["unit"],
                ratio=found.get("ratio"),
                machine=on_machine,
                commit=at_commit,
            ),
        )


def run(command: str) -> str | None:
    """Run one bench program and return its output; None if it failed."""
    words = shlex.split(command)
    if words[0] == "python":
        words[0] = sys.executable
    print(f"== {command}", flush=True)
    done = subprocess.run(words, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    return done.stdout if done.returncode == 0 else None


def chosen(figures: Sequence[Figure], ids: Sequence[str]) -> list[Figure]:
    """Return the figures with these ids, or all if none are given."""
    return [figure for figure in figures if not ids or figure.id in ids]


def main() -> int:
    """Run the programs; fail if one failed or printed an unknown figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="measure, but write nothing")
    parser.add_argument("ids", nargs="*", help="only these figures")
    options = parser.parse_args()
    figures = chosen(figures_page.load_figures(), options.ids)
    measured = figures_page.load_measured()
    known = {figure.id for figure in figures_page.load_figures()}
    on_machine, at_commit = machine(), commit()
    failed: list[str] = []
    for command in dict.fromkeys(figure.command for figure in figures):
        output = run(command)
        if output is None:
            failed.append(f"{command} failed")
            continue
        results = dict(parse(output, on_machine=on_machine, at_commit=at_commit))
        failed.extend(
            f"{command} printed an unknown figure, {name}" for name in results.keys() - known
        )
        measured.update({name: result for name, result in results.items() if name in known})
    for figure in figures:
        print(figures_page.row(figure, measured.get(figure.id)))
    if not options.print:
        figures_page.save_measured(measured)
        (ROOT / "docs" / "reference" / "figures.md").write_text(figures_page.render())
    for problem in failed:
        print(f"figures: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
