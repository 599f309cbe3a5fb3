"""The page of figures: targets, measured values, machines and commits."""

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

Targets, measured values, and the machines they were measured on. Written by `make figures`, which
runs the programs listed at the end and stores their results in `bench/measured.json`; do not edit.
The targets are in `bench/figures.toml`.

*Ratio* is the measured value over the reference of the same run if the figure names one, otherwise
over the target. Machines differ: compare only figures of one machine.
"""


class Compare(StrEnum):
    """Which of the two numbers the target bounds, and from which side."""

    RATIO_AT_LEAST = "ratio at least"
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number with its target."""

    id: str
    issue: str
    what: str
    compare: Compare
    asked: float
    unit: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured number, and where it was measured."""

    measured: float
    unit: str
    ratio: float | None
    machine: str
    commit: str


def load_figures(path: Path = ASKED) -> list[Figure]:
    """Return all figures with targets; ids are unique."""
    rows = tomllib.loads(path.read_text())["figure"]
    found = [Figure(**{**row, "compare": Compare(row["compare"])}) for row in rows]
    assert len({figure.id for figure in found}) == len(found), "a figure's id is used twice"
    return found


def load_measured(path: Path = MEASURED) -> dict[str, Measured]:
    """Return the stored results, by figure."""
    if not path.exists():
        return {}
    return {name: Measured(**row) for name, row in json.loads(path.read_text()).items()}


def save_measured(measured: Mapping[str, Measured], path: Path = MEASURED) -> None:
    """Store the results."""
    rows = {name: asdict(row) for name, row in sorted(measured.items())}
    path.write_text(json.dumps(rows, indent=2) + "\n")


def ratio(figure: Figure, result: Measured) -> float:
    """Return the program's own ratio, or else the measured value over the target.

    If the target is a ratio, the program may measure it directly: then that is the ratio. So is the
    measured value if the target is zero, as for failures.
    """
    if result.ratio is not None:
        return result.ratio
    if figure.compare is Compare.RATIO_AT_LEAST or not figure.asked:
        return result.measured
    return result.measured / figure.asked


def met(figure: Figure, result: Measured) -> bool:
    """Return whether the figure meets its target."""
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
    """Return the page, from the targets and the stored results."""
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
