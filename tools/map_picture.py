"""Draws the map of the code: packages in their layers, rooms inside them, lines for imports."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

from tools.code_map import BASE, OWN_LABEL, CodeMap, Place, about, at_least
from tools.map_layout import Edge, Item, chain, middles, rows_with_lanes

WIDTH = 1240
MARGIN = 24
ROW_GAP = 62
BOX_GAP = 22
BOX_WIDTH = 178
ROOMY_WIDTH = 300
LANE_WIDTH = 4
HEAD_HEIGHT = 50
ROOM_HEIGHT = 26
ROOM_GAP = 6
ARCS_WIDTH = 92
"""To the right of the rooms of a package, for the lines between them."""

_STYLE = """\
text { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 12px; fill: #57606a }
.name { font-size: 15px; font-weight: 600; fill: #1f2328 }
.room .name { font-size: 12.5px }
.card { fill: #ffffff }
.box > rect { fill: #f6f8fa; stroke: #8c959f }
.room > rect { fill: #ffffff; stroke: #d0d7de }
.line { fill: none; stroke: #0969da; stroke-opacity: .75; pointer-events: none }
.faint { stroke: #57606a; stroke-opacity: .16 }
.arc { fill: none; stroke: #bc4c00; stroke-opacity: .6; pointer-events: none }
.tip { fill: #0969da; pointer-events: none } .tip.faint { fill: #57606a; fill-opacity: .3 }
.end { fill: #bc4c00; pointer-events: none }
"""
_DARK = """\
text { fill: #9198a1 } .name { fill: #f0f6fc } .card { fill: #0d1117 }
.box > rect { fill: #151b23; stroke: #656c76 } .room > rect { fill: #0d1117; stroke: #3d444d }
.line { stroke: #4493f8 } .tip { fill: #4493f8 } .arc { stroke: #f0883e } .end { fill: #f0883e }
.faint { stroke: #9198a1; stroke-opacity: .22 } .tip.faint { fill: #9198a1 }
"""


Lane: TypeAlias = tuple[float, float, float]
"""A line passes a row here: how far from the left, from what height to what height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Where a package is drawn."""

    place: Place
    left: float
    top: float
    width: float
    height: float
    row_end: float
    """Where the highest box of its row ends: lines turn only between rows."""

    @property
    def middle(self) -> float:
        """Half-way between left and right."""
        return self.left + self.width / 2


def draw(found: CodeMap, folder: Path) -> str:
    """Return the drawing, whose links lead from this folder."""
    edges = _edges(found)
    direct = _direct(edges)
    boxes, lanes = _places(found, direct)
    height = max(box.top + box.height for box in boxes.values()) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'width="{WIDTH}" height="{height:g}" role="img">',
        "<title>The packages of kafkaesque in their layers, and the rooms inside them</title>",
        f"<style>\n{_STYLE}{_hover(boxes)}"
        f"@media (prefers-color-scheme: dark) {{\n{_DARK}}}\n</style>",
        f'<rect class="card" width="{WIDTH}" height="{height:g}" rx="8"/>',
    ]
    ordered = sorted(edges, key=lambda edge: (edge in direct, edge))  # faint ones lie below
    ports = _ports(ordered, boxes, lanes)
    for edge in ordered:
        parts += _line(edge, edges[edge], ports, boxes, lanes.get(edge))
    for box in boxes.values():
        parts += _package(box, found, folder)
    return "\n".join([*parts, "</svg>", ""])


def _places(
    found: CodeMap, edges: Collection[Edge]
) -> tuple[dict[str, Box], dict[Edge, list[Lane]]]:
    """Return where the boxes are, and through which lanes each of these edges goes."""
    level = {name: at for at, row in enumerate(found.rows) for name in row}
    chains = {edge: chain(edge, level) for edge in sorted(edges)}
    rows = rows_with_lanes(found.rows, edges)
    widths: dict[Item, float] = {}
    for item in (item for row in rows for item in row):
        widths[item] = _width(found, item) if isinstance(item, str) else LANE_WIDTH
    bounds = (MARGIN, WIDTH - MARGIN)
    across = middles(rows, chains.values(), widths, BOX_GAP, bounds)
    boxes: dict[str, Box] = {}
    spans: list[tuple[float, float]] = []
    top = float(MARGIN)
    for names in found.rows:
        tallest = max(_height(found, found.packages[name]) for name in names)
        for name in names:
            place, height = found.packages[name], _height(found, found.packages[name])
            boxes[name] = Box(
                place=place,
                left=across[name] - widths[name] / 2,
                top=top,
                width=widths[name],
                height=height,
                row_end=top + tallest,
            )
        spans.append((top, top + tallest))
        top += tallest + ROW_GAP
    lanes = {
        edge: [(across[item], *spans[level[edge[0]] + at]) for at, item in enumerate(points)][1:-1]
        for edge, points in chains.items()
    }
    return boxes, lanes


def _width(found: CodeMap, name: str) -> float:
    if name == BASE:
        return WIDTH - 2 * MARGIN
    return ROOMY_WIDTH if name in found.rooms else BOX_WIDTH


def _rooms(found: CodeMap, place: Place) -> Sequence[Place]:
    return found.rooms.get(place.package, ())


def _height(found: CodeMap, place: Place) -> float:
    rooms = len(_rooms(found, place))
    return HEAD_HEIGHT + (rooms * (ROOM_HEIGHT + ROOM_GAP) + ROOM_GAP if rooms else 0)


# ── boxes ───────────────────────────────────────────────────────────────────────────────────────


def _package(box: Box, found: CodeMap, folder: Path) -> Iterator[str]:
    place = box.place
    if place.package == BASE:
        detail = " · ".join(found.base)
    else:
        files = "1 file" if place.files == 1 else f"{place.files} files"
        detail = f"{files}, {about(place.lines):,} lines"
    yield f'<g class="box" id="{place.package}">'
    yield f"<title>{escape(place.summary)}</title>"
    yield (
        f'<rect x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="6"/>'
    )
    yield f'<a href="{_link(place, folder)}">'
    yield f'<text class="name" x="{box.left + 12:g}" y="{box.top + 21:g}">{place.package}</text>'
    yield f'<text x="{box.left + 12:g}" y="{box.top + 39:g}">{escape(detail)}</text>'
    yield "</a>"
    rooms = _rooms(found, place)
    tops = {
        room.room: box.top + HEAD_HEIGHT + at * (ROOM_HEIGHT + ROOM_GAP)
        for at, room in enumerate(rooms)
    }
    width = box.width - 12 - ARCS_WIDTH
    for room in rooms:
        yield from _room(room, box.left + 12, tops[room.room], width, folder)
    counts = found.room_imports.get(place.package, {})
    for one, count in sorted(counts.items()):
        yield from _arc(one, count, tops, box.left + 12 + width)
    yield "</g>"


def _room(room: Place, left: float, top: float, width: float, folder: Path) -> Iterator[str]:
    yield f'<a class="room" href="{_link(room, folder)}"><title>{escape(room.summary)}</title>'
    yield (f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{ROOM_HEIGHT}" rx="4"/>')
    label = room.room or OWN_LABEL
    yield f'<text class="name" x="{left + 8:g}" y="{top + 17.5:g}">{label}</text>'
    yield (
        f'<text x="{left + width - 8:g}" y="{top + 17.5:g}" text-anchor="end">'
        f"{about(room.lines):,}</text></a>"
    )


def _arc(
    edge: tuple[str, str], count: int, tops: Mapping[str, float], right: float
) -> Iterator[str]:
    """Draw a line between two rooms, beside them; it leaves low and comes in high."""
    above, below = edge
    start = tops[above] + ROOM_HEIGHT * 0.7
    end = tops[below] + ROOM_HEIGHT * 0.3
    steps = abs(tops[below] - tops[above]) / (ROOM_HEIGHT + ROOM_GAP)
    reach = right + 10 + 13 * steps
    yield (
        f'<path class="arc" stroke-width="{_thickness(count):g}" d="M{right:g} {start:g} '
        f'C{reach:g} {start:g} {reach:g} {end:g} {right + 7:g} {end:g}"/>'
    )
    yield (f'<path class="end" d="M{right + 1:g} {end:g} l7 -4 v8 z"/>')


def _link(place: Place, folder: Path) -> str:
    return Path(os.path.relpath(place.path, folder)).as_posix()


# ── lines between packages ──────────────────────────────────────────────────────────────────────


def _edges(found: CodeMap) -> dict[tuple[str, str], int]:
    """Return what is drawn; everything imports the base, so that is not."""
    return {
        (one, other): count
        for (one, other), count in sorted(found.imports.items())
        if other != BASE and one in found.packages
    }


def _direct(edges: Mapping[tuple[str, str], int]) -> set[tuple[str, str]]:
    """Return the edges from a package to what it reaches in no other way."""
    below: dict[str, set[str]] = {}
    for one, other in edges:
        below.setdefault(one, set()).add(other)

    def reached(start: str) -> set[str]:
        return set().union(*({to} | reached(to) for to in below.get(start, ())))

    return {
        (one, other)
        for one, other in edges
        if not any(other in reached(to) for to in below[one] if to != other)
    }


def _ports(
    edges: Iterable[Edge], boxes: Mapping[str, Box], lanes: Mapping[Edge, Sequence[Lane]]
) -> dict[tuple[Edge, str], float]:
    """Return where each edge leaves its upper box and enters its lower one: side by side."""
    found = {}
    for name, box in boxes.items():
        for side in (0, 1):
            next_to = {}
            for edge in edges:
                if edge[side] == name:
                    passed = lanes.get(edge)
                    next_to[edge] = passed[-side][0] if passed else boxes[edge[1 - side]].middle
            mine = sorted(next_to, key=lambda edge: (next_to[edge], edge))
            for at, edge in enumerate(mine, start=1):
                found[edge, name] = box.left + box.width * at / (len(mine) + 1)
    return found


def _line(
    edge: Edge,
    count: int,
    ports: Mapping[tuple[Edge, str], float],
    boxes: Mapping[str, Box],
    lanes: Sequence[Lane] | None,
) -> Iterator[str]:
    """Draw one line, through its lanes; one that has none, not even an empty list, is faint."""
    one, other = edge
    x, y = ports[edge, one], boxes[one].row_end
    end = boxes[other].top - 7
    path = f"M{x:g} {boxes[one].top + boxes[one].height:g} V{y:g}"
    for lane, top, bottom in lanes or ():
        path += f" {_curve(x, y, lane, top)} V{bottom:g}"
        x, y = lane, bottom
    path += f" {_curve(x, y, ports[edge, other], end)}"
    names = f"from-{one} to-{other}" + (" faint" if lanes is None else "")
    yield f'<path class="line {names}" stroke-width="{_thickness(count):g}" d="{path}"/>'
    yield f'<path class="tip {names}" d="M{ports[edge, other]:g} {end + 6:g} l-4.5 -8 h9 z"/>'


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    bend = (y2 - y1) * 0.5
    return f"C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}"


def _thickness(count: int) -> float:
    return {1: 1.0, 2: 1.3, 5: 1.8, 10: 2.5, 20: 3.5, 50: 5.0}.get(at_least(count), 6.5)


def _hover(boxes: Mapping[str, Box]) -> str:
    """Let the lines of the package under the pointer come out."""
    names = [name for name in boxes if name != BASE]
    shown = ",\n".join(f"svg:has(#{name}:hover) :is(.from-{name}, .to-{name})" for name in names)
    return f"{shown} {{ stroke-opacity: 1; fill-opacity: 1; stroke: #cf222e }}\n"
