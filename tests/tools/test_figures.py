"""How measured numbers are read, compared with their goals, and stored."""

from pathlib import Path

import pytest

from tools.figures import parse
from tools.figures_page import (
    Compare,
    Figure,
    Measured,
    load_figures,
    load_measured,
    met,
    row,
    save_measured,
)


def a_figure(compare: Compare, asked: float) -> Figure:
    return Figure(
        id="append-16k",
        issue="The log",
        what="appending",
        compare=compare,
        asked=asked,
        unit="s",
        command="python -m bench.append",
    )


def a_result(measured: float, ratio: float | None = None) -> Measured:
    return Measured(measured=measured, unit="s", ratio=ratio, machine="a desk", commit="abc")


@pytest.mark.parametrize(
    ("compare", "asked", "result", "expected"),
    [
        (Compare.AT_LEAST, 20.0, a_result(20.0), True),
        (Compare.AT_LEAST, 20.0, a_result(19.9), False),
        (Compare.AT_MOST, 1.0, a_result(1.0), True),
        (Compare.AT_MOST, 1.0, a_result(1.1), False),
        (Compare.AT_MOST, 0, a_result(0), True),
        (Compare.AT_MOST, 0, a_result(1), False),
        (Compare.RATIO_AT_LEAST, 0.6, a_result(812.0, ratio=0.61), True),
        (Compare.RATIO_AT_LEAST, 0.6, a_result(812.0, ratio=0.59), False),
        (Compare.RATIO_AT_LEAST, 0.6, a_result(0.59), False),
    ],
)
def test_a_figure_on_the_right_side_of_its_goal_is_met(
    compare: Compare, asked: float, result: Measured, expected: bool
) -> None:
    assert met(a_figure(compare, asked), result) is expected
    assert ("**no**" not in row(a_figure(compare, asked), result)) is expected


def test_only_lines_with_a_figure_are_read() -> None:
    output = (
        'warming up\n{"figure": "x", "measured": 2, "unit": "s", "ratio": null}\n{"other": 1}\n'
    )
    found = dict(parse(output, on_machine="a desk", at_commit="abc"))
    assert found == {"x": a_result(2.0)}


def test_measurements_are_stored_and_read_back(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    assert load_measured(file) == {}
    save_measured({"x": a_result(1.5, ratio=0.7)}, file)
    assert load_measured(file) == {"x": a_result(1.5, ratio=0.7)}


def test_every_measured_figure_has_a_goal() -> None:
    assert load_measured().keys() <= {figure.id for figure in load_figures()}
