"""Plots as hand-written SVG.

Two kinds of plot are needed, bars and curves. A plotting library would be larger than all other
development tools together and write files with unreadable diffs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

WIDTH = 760
_LABEL_WIDTH = 210
_VALUE_WIDTH = 90
_BAR = 16
_GAP = 6
_HEAD = 44
_OURS = "#b5481f"
_COLOURS = ("#4878a8", "#6a9a58", "#8a6aa8", "#a08a3c", "#4a9a9a", "#888888", "#b06a8a", "#5a5a5a")
_STYLE = (
    "<style>text{font:12px sans-serif;fill:#333}.t{font-size:14px;font-weight:bold}"
    ".n{fill:#777}.g{stroke:#ddd}</style>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: a label, a length and the text after it."""

    label: str
    value: float
    text: str
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One curve, its points from left to right.

    Curves of one family have one colour; synced ones are dashed.
    """

    label: str
    points: Sequence[tuple[float, float]]
    is_ours: bool
    family: str = ""
    is_dashed: bool = False


def bars(title: str, note: str, rows: Sequence[Bar]) -> str:
    """Return horizontal bars from 0, the longest across the whole width."""
    longest = max((row.value for row in rows), default=0) or 1
    room = WIDTH - _LABEL_WIDTH - _VALUE_WIDTH
    parts = []
    for number, row in enumerate(rows):
        top = _HEAD + number * (_BAR + _GAP)
        width = max(1.0, room * row.value / longest)
        colour = _OURS if row.is_ours else _COLOURS[0]
        base = top + _BAR - 4
        parts += [
            _text(_LABEL_WIDTH - 8, base, row.label, anchor="end"),
            f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{width:.1f}" height="{_BAR}"'
            f' fill="{colour}"/>',
            _text(_LABEL_WIDTH + width + 6, base, row.text),
        ]
    return _page(_HEAD + len(rows) * (_BAR + _GAP) + 10, title, note, parts)


def percentile_curves(title: str, note: str, curves: Sequence[Curve]) -> str:
    """Return latency over percentile: x is per cent below 100, y milliseconds, both logarithmic.

    To the right each nine takes the same space, as in HdrHistogram's own plots.
    """
    ticks = {f"{p:g} %": _nines(p) for p in (0, 50, 90, 99, 99.9, 99.99)}
    moved = [replace(curve, points=[(_nines(x), y) for x, y in curve.points]) for curve in curves]
    return _curves(title, note, moved, ticks, "ms")


def scaling_curves(title: str, note: str, curves: Sequence[Curve], unit: str) -> str:
    """Return a rate over a number, both logarithmic."""
    numbers = sorted({x for curve in curves for x, _ in curve.points})
    ticks = {f"{x:,g}": math.log10(x) for x in numbers}
    moved = [
        replace(curve, points=[(math.log10(x), y) for x, y in curve.points]) for curve in curves
    ]
    return _curves(title, note, moved, ticks, unit)


def _nines(percent: float) -> float:
    return -math.log10(1 - percent / 100)


def _curves(
    title: str, note: str, curves: Sequence[Curve], ticks: Mapping[str, float], unit: str
) -> str:
    left, right, top, bottom = 70, WIDTH - 210, _HEAD, 340
    values = [y for curve in curves for _, y in curve.points if y > 0] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    x_low, x_high = min(ticks.values()), max(ticks.values())

    def x_of(x: float) -> float:
        return left + (right - left) * (x - x_low) / ((x_high - x_low) or 1)

    def y_of(y: float) -> float:
        return bottom - (bottom - top) * (math.log10(max(y, 10**low)) - low) / (high - low)

    parts = []
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        parts.append(f'<line class="g" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(left - 8, y + 4, f"{10.0**power:,g} {unit}", anchor="end"))
    for name, place in ticks.items():
        x = x_of(place)
        parts.append(f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 18, name, anchor="middle"))
    families = list(dict.fromkeys(curve.family for curve in curves if not curve.is_ours))
    for number, curve in enumerate(curves):
        place = 0 if curve.is_ours else families.index(curve.family)
        colour = _OURS if curve.is_ours else _COLOURS[place % len(_COLOURS)]
        dashes = ' stroke-dasharray="6 4"' if curve.is_dashed else ""
        line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in curve.points)
        weight = 3 if curve.is_ours else 1.6
        height = top + 10 + 18 * number
        parts += [
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{weight}"'
            f"{dashes}/>",
            f'<line x1="{right + 8}" x2="{right + 34}" y1="{height - 4}" y2="{height - 4}"'
            f' stroke="{colour}" stroke-width="{weight}"{dashes}/>',
            _text(right + 40, height, curve.label),
        ]
    return _page(bottom + 34, title, note, parts)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _page(height: float, title: str, note: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}"'
        f' width="{WIDTH}" height="{height:.0f}" role="img" aria-label="{escape(title)}">'
    )
    paper = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fff"/>'
    titles = (
        f'<text class="t" x="8" y="18">{escape(title)}</text>',
        f'<text class="n" x="8" y="34">{escape(note)}</text>',
    )
    return "\n".join([head, _STYLE, paper, *titles, *parts, "</svg>"]) + "\n"
