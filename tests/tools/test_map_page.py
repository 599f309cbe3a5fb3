"""The contents of the map of the code, and how its numbers are rounded."""

import re
from itertools import pairwise

import pytest

from tools import map_page
from tools.code_map import about, at_least, code_map
from tools.map_layout import chain, middles, rows_with_lanes


@pytest.mark.parametrize(
    ("count", "told"), [(1, 1), (4, 2), (9, 5), (10, 10), (49, 20), (50, 50), (134, 100)]
)
def test_import_counts_are_rounded_down_to_steps(count: int, told: int) -> None:
    assert at_least(count) == told


@pytest.mark.parametrize(
    ("lines", "told"), [(3, 100), (149, 100), (150, 200), (1_260, 1_500), (10_281, 10_000)]
)
def test_lines_are_rounded(lines: int, told: int) -> None:
    assert about(lines) == told


def test_every_package_is_above_those_that_it_imports() -> None:
    found = code_map()
    level = {name: at for at, row in enumerate(found.rows) for name in row}
    assert all(level[one] < level[other] for one, other in found.imports if one in level)


def test_every_link_of_the_picture_resolves() -> None:
    links = re.findall(r'href="([^"]*)"', map_page.render_picture())
    assert links
    assert [one for one in links if not (map_page.PICTURE.parent / one).exists()] == []


def test_every_room_has_a_description() -> None:
    rooms = [place for places in code_map().rooms.values() for place in places]
    assert [place.path for place in rooms if not place.summary.endswith(".")] == []


def test_a_line_that_crosses_a_row_has_a_lane_in_it() -> None:
    rows = [["a", "b"], ["c", "d"], ["e", "f"]]
    edges = [("a", "f"), ("b", "e"), ("b", "c"), ("a", "d")]
    placed = rows_with_lanes(rows, edges)
    assert [len(row) for row in placed] == [2, 4, 2]
    assert [one in placed[1] for one in ((("a", "f"), 1), (("b", "e"), 1))] == [True, True]


def test_boxes_do_not_overlap_and_stay_within_the_picture() -> None:
    edges = [("a", "b"), ("a", "c"), ("a", "d")]
    rows = rows_with_lanes([["a"], ["b", "c", "d"]], edges)
    level = {"a": 0, "b": 1, "c": 1, "d": 1}
    chains = [chain(edge, level) for edge in edges]
    found = middles(rows, chains, dict.fromkeys("abcd", 10.0), 5.0, (0.0, 60.0))
    below = sorted(found[name] for name in "bcd")
    assert all(right - left >= 15 for left, right in pairwise(below))
    assert below[0] >= 5
    assert below[-1] <= 55
