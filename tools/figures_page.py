"""The page of figures: what was asked for, what was measured, on which machine, at which commit."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from tools.repository import ROOT

ASKED = ROOT / "bench" / "figures.toml"
MEASURED = ROOT / "bench" / "measured.json"

_HEAD = """\
# Figures

What was asked for, what was measured, and on which machine. Written by `make figures`, which runs
the programs that stand at the end and keeps what they measured in `bench/measured.json`; do not
edit. What is asked for stands in `bench/figures.toml`.

*Ratio* is the measured value over the reference of the same run where the figure names one, and
else over what was asked. Machines differ: compare figures of one machine only.
"""


class Compare(StrEnum):
    """Which of the two numbers the asked value bounds, and from which side."""

    RATIO_AT_LEAST = "ratio at least"
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number that was asked for."""

    id: str
    issue: str
    what: str
    compare: Compare
    asked: float
    unit: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One number that was measured, and where."""

    measured: float
    unit: str
    ratio: float | None
    machine: str
    commit: str


def load_figures(path: Path = ASKED) -> list[Figure]:
    """Return all figures that were asked for; ids are unique."""
    rows = tomllib.loads(path.read_text())["figure"]
    found = [Figure(**{**row, "compare": Compare(row["compare"])}) for row in rows]
    assert len({figure.id for figure in found}) == len(found), "a figure's id is used twice"
    return found


def load_measured(path: Path = MEASURED) -> dict[str, Measured]:
    """Return what was measured so far, by figure."""
    if not path.exists():
        return {}
    return {name: Measured(**row) for name, row in json.loads(path.read_text()).items()}


def save_measured(measured: Mapping[str, Measured], path: Path = MEASURED) -> None:
    """Keep what was measured."""
    rows = {name: asdict(row) for name, row in sorted(measured.items())}
    path.write_text(json.dumps(rows, indent=2) + "\n")


def ratio(figure: Figure, result: Measured) -> float:
    """Return the program's own ratio; if it gave none, measured over asked.

    A figure that asks for a ratio may be measured as one: then that is the ratio. So is what was
    measured where nothing at all is asked for, such as failures.
    """
    if result.ratio is not None:
        return result.ratio
    if figure.compare is Compare.RATIO_AT_LEAST or not figure.asked:
        return result.measured
    return result.measured / figure.asked


def met(figure: Figure, result: Measured) -> bool:
    """Return whether the figure reaches what was asked."""
    match figure.compare:
        case Compare.RATIO_AT_LEAST:
            return ratio(figure, result) >= figure.asked
        case Compare.AT_LEAST:
            return result.measured >= figure.asked
        case Compare.AT_MOST:
            return result.measured <= figure.asked


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def row(figure: Figure, result: Measured | None) -> str:
    """Return one line of the table."""
    asked = f"{figure.compare} {_number(figure.asked)} {figure.unit}".strip()
    head = f"| {figure.id} | {figure.what} | {asked} |"
    if result is None:
        return f"{head} not yet | | | | |"
    verdict = "yes" if met(figure, result) else "**no**"
    value = f"{_number(result.measured)} {result.unit}".strip()
    share = f"{ratio(figure, result):.2f}"
    return f"{head} {value} | {share} | {verdict} | {result.machine} | {result.commit} |"


def render() -> str:
    """Return the page from what was asked and what was kept."""
    measured = load_measured()
    parts = [_HEAD.strip()]
    for issue, figures in groupby(load_figures(), key=lambda figure: figure.issue):
        lines = [
            "| figure | what | asked | measured | ratio | met | machine | commit |",
            "|---|---|---|---|---|---|---|---|",
            *(row(figure, measured.get(figure.id)) for figure in figures),
        ]
        parts.append(f"## {issue}\n\n" + "\n".join(lines))
    commands = sorted({figure.command for figure in load_figures()})
    parts.append(
        "## How they are measured\n\n" + "\n".join(f"- `{command}`" for command in commands)
    )
    return "\n\n".join(parts) + "\n"
