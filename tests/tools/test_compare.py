"""How figures of two trees are compared."""

import pytest

from tools.compare import report, value_of, worse_by
from tools.figures_page import Compare, Figure, Measured


def a_figure(compare: Compare, name: str = "append") -> Figure:
    return Figure(
        id=name, issue="", what="", compare=compare, asked=1.0, unit="s", command="python -m x"
    )


@pytest.mark.parametrize(
    ("compare", "before", "after", "expected"),
    [
        (Compare.AT_MOST, 2.0, 3.0, 0.5),
        (Compare.AT_MOST, 2.0, 1.0, -0.5),
        (Compare.AT_LEAST, 2.0, 1.0, 0.5),
        (Compare.RATIO_AT_LEAST, 2.0, 3.0, -0.5),
        (Compare.AT_MOST, 0.0, 0.0, 0.0),
    ],
)
def test_more_time_or_less_speed_is_worse(
    compare: Compare, before: float, after: float, expected: float
) -> None:
    assert worse_by(a_figure(compare), before, after) == expected


def test_a_ratio_counts_where_one_is_required() -> None:
    result = Measured(measured=7.0, unit="s", ratio=0.5, machine="", commit="")
    assert value_of(a_figure(Compare.RATIO_AT_LEAST), result) == 0.5
    assert value_of(a_figure(Compare.AT_MOST), result) == 7.0


def test_medians_are_compared_so_that_one_slow_run_does_no_harm() -> None:
    figures = [a_figure(Compare.AT_MOST, name) for name in ("same", "slower", "unmeasured")]
    before = {"same": [1.0, 1.0, 1.0], "slower": [1.0, 1.0, 1.0]}
    after = {"same": [1.0, 9.0, 1.02], "slower": [1.1, 1.0, 1.2]}
    lines, worse = report(figures, before, after)
    assert worse == ["slower"]
    assert [line.split()[0] for line in lines[1:]] == ["same", "slower"]
