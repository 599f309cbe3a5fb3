"""Where the boxes of the map stand: rows from top to bottom, with lanes for lines that pass a row.

The usual way to draw layers (Sugiyama's): a line that passes rows gets a lane in each of them, rows
are sorted until few lines cross, and then everything moves as near to its neighbours as it can. It
depends on what there is to draw and on nothing else, so the picture stays as it is.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

Edge: TypeAlias = tuple[str, str]
Item: TypeAlias = Hashable
"""A box, by its name, or a lane, by its edge and row."""

_SWEEPS = 24
_PULLS = 60


def rows_with_lanes(rows: Sequence[Sequence[str]], edges: Iterable[Edge]) -> list[list[Item]]:
    """Return the rows in the order in which few lines cross."""
    level = {name: at for at, row in enumerate(rows) for name in row}
    found: list[list[Item]] = [list(row) for row in rows]
    chains = [chain(edge, level) for edge in sorted(edges)]
    for points in chains:
        for at, item in enumerate(points[1:-1], start=level[str(points[0])] + 1):
            found[at].append(item)
    best = [list(row) for row in found]
    for sweep in range(_SWEEPS):
        places = _numbers(found)
        near = _neighbours(chains, level, upward=sweep % 2 == 0)
        for row in found if sweep % 2 == 0 else reversed(found):
            mean = {item: _mean([places[one] for one in near.get(item, [item])]) for item in row}
            row.sort(key=lambda item: (mean[item], places[item]))
            places |= {item: at / len(row) for at, item in enumerate(row)}
        if _crossings(found, chains) < _crossings(best, chains):
            best = [list(row) for row in found]
    return best


def chain(edge: Edge, level: Mapping[str, int]) -> list[Item]:
    """Return what an edge passes: its upper box, a lane in each row between, its lower box."""
    one, other = edge
    lanes: list[Item] = [(edge, at) for at in range(level[one] + 1, level[other])]
    return [one, *lanes, other]


def middles(
    rows: Sequence[Sequence[Item]],
    chains: Iterable[Sequence[Item]],
    widths: Mapping[Item, float],
    gap: float,
    bounds: tuple[float, float],
) -> dict[Item, float]:
    """Return where the middle of each item is, from left to right."""
    near: dict[Item, list[Item]] = {}
    for points in chains:
        for one, other in pairwise(points):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    found: dict[Item, float] = {}
    for row in rows:
        found |= _spread(row, dict.fromkeys(row, sum(bounds) / 2), widths, gap, bounds)
    for _ in range(_PULLS):
        for row in rows:
            wanted = {item: _mean([found[one] for one in near.get(item, [item])]) for item in row}
            found |= _spread(row, wanted, widths, gap, bounds)
    return found


def _spread(
    row: Sequence[Item],
    wanted: Mapping[Item, float],
    widths: Mapping[Item, float],
    gap: float,
    bounds: tuple[float, float],
) -> dict[Item, float]:
    """Return places as near to those wanted as order, widths and bounds allow."""
    if not row:
        return {}
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (widths[one] + widths[other]) / 2 + gap)
    blocks: list[tuple[float, int]] = []  # mean of what is wanted, and for how many
    for item, offset in zip(row, offsets, strict=True):
        blocks.append((wanted[item] - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (last, n), (before, m) = blocks.pop(), blocks.pop()
            blocks.append(((last * n + before * m) / (n + m), n + m))
    starts = [value for value, count in blocks for _ in range(count)]
    least = bounds[0] + widths[row[0]] / 2
    most = bounds[1] - widths[row[-1]] / 2 - offsets[-1]
    return {
        item: round(min(max(start, least), most) + offset, 1)
        for item, start, offset in zip(row, starts, offsets, strict=True)
    }


def _numbers(rows: Sequence[Sequence[Item]]) -> dict[Item, float]:
    return {item: at / len(row) for row in rows for at, item in enumerate(row)}


def _neighbours(
    chains: Iterable[Sequence[Item]], level: Mapping[str, int], *, upward: bool
) -> dict[Item, list[Item]]:
    """Return what each item hangs on in the row above, or below."""
    near: dict[Item, list[Item]] = {}
    for points in chains:
        for one, other in pairwise(points):
            lower, upper = (other, one) if upward else (one, other)
            near.setdefault(lower, []).append(upper)
    return near


def _crossings(rows: Sequence[Sequence[Item]], chains: Iterable[Sequence[Item]]) -> int:
    places = {item: (at, n) for at, row in enumerate(rows) for n, item in enumerate(row)}
    by_row: dict[int, list[tuple[int, int]]] = {}
    for points in chains:
        for one, other in pairwise(points):
            by_row.setdefault(places[one][0], []).append((places[one][1], places[other][1]))
    return sum(
        (a - c) * (b - d) < 0
        for lines in by_row.values()
        for at, (a, b) in enumerate(lines)
        for c, d in lines[at + 1 :]
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
