"""What lies where in the code, and who imports whom: the facts behind the map.

A *place* is a package of `kafkaesque`, or a room: a package inside a package. The modules that
every package stands on are one place, the base. Numbers are told in steps, so that what is written
of them does not change with every commit.
"""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from tools.repository import ROOT, SOURCE, module_name

BASE = "base"
"""The modules below every package, by the layers in `pyproject.toml`."""

OWN = ""
"""The room of those modules that lie in no room of their package."""

OWN_LABEL = "own modules"

_LEFT_OUT = {"__main__"}
"""Only starts the command line."""

_STEPS = (1, 2, 5)
_LINES_STEPS = ((1_000, 100), (10_000, 500))
_LINES_STEP_LAST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A package, a room of one, or the base."""

    package: str
    room: str = OWN
    path: Path
    files: int
    lines: int
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMap:
    """All places, and how many import statements lead from one to another."""

    rows: Sequence[Sequence[str]]
    """The packages by layers, those that import the others first; the base comes last."""
    base: Sequence[str]
    """The modules of the base."""
    packages: Mapping[str, Place]
    rooms: Mapping[str, Sequence[Place]]
    """The rooms of the packages that have any, those that import the others first."""
    imports: Mapping[tuple[str, str], int]
    """Between packages."""
    room_imports: Mapping[str, Mapping[tuple[str, str], int]]
    """Between the rooms of each package."""


def at_least(count: int) -> int:
    """Return the last of 1, 2, 5, 10, 20, 50 … that is no more than the count."""
    found, ten = 1, 1
    while ten <= count:
        found = max(step * ten for step in _STEPS if step * ten <= count)
        ten *= 10
    return found


def about(lines: int) -> int:
    """Return a number of lines, rounded so that few commits change it."""
    step = next((step for below, step in _LINES_STEPS if lines < below), _LINES_STEP_LAST)
    return max(step, (lines + step // 2) // step * step)


def first_sentence(path: Path) -> str:
    """Return how the docstring of a Python file begins."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]


@cache
def code_map() -> CodeMap:
    """Read the whole package."""
    rows, base = _layers()
    files: dict[tuple[str, str], list[Path]] = {}
    imports: Counter[tuple[str, str]] = Counter()
    room_imports: dict[str, Counter[tuple[str, str]]] = {}
    homes = {module_name(path): _home(path, base) for path in sorted(SOURCE.rglob("*.py"))}
    for path in sorted(SOURCE.rglob("*.py")):
        here = homes[module_name(path)]
        files.setdefault(here, []).append(path)
        for name in _imported(path, homes):
            there = homes[name]
            if there[0] != here[0]:
                imports[here[0], there[0]] += 1
            elif there[1] != here[1]:
                room_imports.setdefault(here[0], Counter())[here[1], there[1]] += 1
    packages = {name: _package(name, files) for row in rows for name in row}
    packages[BASE] = _place(
        BASE, OWN, SOURCE, files[BASE, OWN], "Words, errors, time and settings."
    )
    return CodeMap(
        rows=[*rows, [BASE]],
        base=base,
        packages=packages,
        rooms={
            package: [_room(package, room, files) for room in _ordered(package, files, counts)]
            for package, counts in sorted(room_imports.items())
        },
        imports=imports,
        room_imports=room_imports,
    )


def _layers() -> tuple[list[list[str]], list[str]]:
    """Return the rows of packages, and the modules that lie below all of them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(
        one["layers"] for one in contracts["contracts"] if one.get("containers") == ["kafkaesque"]
    )
    rows = [sorted({name.strip() for name in layer.split("|")} - _LEFT_OUT) for layer in layers]
    last = max(place for place, row in enumerate(rows) if any(_is_package(name) for name in row))
    return [row for row in rows[: last + 1] if row], sorted(chain(*rows[last + 1 :]))


def _is_package(name: str) -> bool:
    return (SOURCE / name / "__init__.py").exists()


def _home(path: Path, base: Sequence[str]) -> tuple[str, str]:
    """Return the package and the room of a file."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    if parts[0] in base or parts[0] == "__init__":
        return BASE, OWN
    return parts[0], parts[1] if len(parts) > 2 else OWN


def _imported(path: Path, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the module that each import statement of a file names; `from a import b, c` is one."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in known)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found = {f"{module}.{alias.name}" for alias in names} & known.keys()
                yield from sorted(found) or ([module] if module in known else [])


def _place(package: str, room: str, path: Path, files: Sequence[Path], summary: str) -> Place:
    lines = sum(1 for file in files for line in file.read_text().splitlines() if line.strip())
    modules = sum(file.name != "__init__.py" for file in files)
    return Place(package=package, room=room, path=path, files=modules, lines=lines, summary=summary)


def _package(name: str, files: Mapping[tuple[str, str], Sequence[Path]]) -> Place:
    mine = [file for (package, _), some in files.items() if package == name for file in some]
    path = SOURCE / name if _is_package(name) else (SOURCE / name).with_suffix(".py")
    init = path / "__init__.py" if path.is_dir() else path
    return _place(name, OWN, path, mine, first_sentence(init))


def _room(package: str, room: str, files: Mapping[tuple[str, str], Sequence[Path]]) -> Place:
    path = SOURCE / package / room
    mine = files[package, room]
    if room != OWN:
        return _place(package, room, path, mine, first_sentence(path / "__init__.py"))
    names = [f"`{file.stem}`" for file in mine if file.name != "__init__.py"]
    shown = ", ".join(names) if len(names) <= 8 else f"{len(names)} modules"
    return _place(package, room, path, mine, f"Not in a room: {shown}.")


def _ordered(
    package: str,
    files: Mapping[tuple[str, str], Sequence[Path]],
    counts: Mapping[tuple[str, str], int],
) -> list[str]:
    """Return the rooms of a package, each above those that it imports."""
    rooms = sorted(
        room for home, room in files if home == package and _has_modules(files, home, room)
    )
    below = {
        room: {to for to in rooms if counts.get((room, to), 0) > counts.get((to, room), 0)}
        for room in rooms
    }
    placed: list[str] = []
    while len(placed) < len(rooms):
        left = [room for room in rooms if room not in placed]
        free = [room for room in left if below[room] <= set(placed)] or left
        placed.append(max(free))
    return placed[::-1]


def _has_modules(files: Mapping[tuple[str, str], Sequence[Path]], package: str, room: str) -> bool:
    return any(file.name != "__init__.py" for file in files[package, room])
