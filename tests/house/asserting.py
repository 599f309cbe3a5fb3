"""Which test functions can fail: those that assert, or call a test helper that does.

A helper is a function, a fixture or a method of the test's file, of a test file that it imports
from, or of a `conftest.py` above it. Calls are followed by name, because nothing is run here.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.repository import ROOT, relative

TESTS = ROOT / "tests"
CHECKS = frozenset({"raises", "warns", "fail"})
"""The assertions of pytest."""

ASSERTING_MARKS = frozenset({"event"})
"""Marks with which a fixture asserts something about the test."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[Path, str]
"""The file of a helper, and its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """What a test file defines and imports."""

    path: Path
    defined: Mapping[str, tuple[ast.stmt, ...]]
    """Functions, classes and methods by their bare names; several may share one."""
    imported: Mapping[str, Place]
    """Names from other test files."""

    @property
    def tests(self) -> Iterator[Function]:
        """The functions that pytest runs."""
        for name, found in self.defined.items():
            if name.startswith("test"):
                yield from (one for one in found if isinstance(one, Function))


@cache
def module(path: Path) -> Module:
    """Read one test file."""
    tree = ast.parse(path.read_text(), filename=str(path))
    defined: dict[str, tuple[ast.stmt, ...]] = {}
    imported: dict[str, Place] = {}
    for top in tree.body:
        inner = top.body if isinstance(top, ast.ClassDef) else []
        for one in (top, *inner):
            if isinstance(one, Function | ast.ClassDef):
                defined[one.name] = (*defined.get(one.name, ()), one)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            imported |= {alias.asname or alias.name: _origin(node, alias) for alias in node.names}
    return Module(path=path, defined=defined, imported=imported)


def _origin(node: ast.ImportFrom, alias: ast.alias) -> Place:
    """Return the file that an imported name is from; the name may be a file itself."""
    assert node.module is not None
    base = ROOT.joinpath(*node.module.split("."))
    for path in (base / f"{alias.name}.py", base.with_suffix(".py")):
        if path.exists():
            return path, alias.name
    return base / "__init__.py", alias.name


def can_fail(path: Path, test: Function) -> bool:
    """Whether a test asserts anything, itself or through its helpers."""
    return _asserts(path, test, frozenset())


def without_assertion(paths: Iterable[Path]) -> list[str]:
    """Return the tests that cannot fail by an assertion, by their pytest names."""
    return [
        f"{relative(path) if path.is_relative_to(ROOT) else path.name}::{test.name}"
        for path in paths
        for test in module(path).tests
        if not can_fail(path, test)
    ]


def _asserts(path: Path, node: ast.stmt, seen: frozenset[Place]) -> bool:
    if any(map(_is_check, ast.walk(node))):
        return True
    return any(
        _helper_asserts(place, seen) for name in _used(node) for place in _places(path, name)
    )


def _helper_asserts(place: Place, seen: frozenset[Place]) -> bool:
    if place in seen:
        return False
    path, name = place
    return any(_asserts(path, found, seen | {place}) for found in module(path).defined[name])


def _is_check(node: ast.AST) -> bool:
    """Whether this is an assertion of Python or pytest."""
    match node:
        case ast.Assert() | ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
            return True
        case ast.Attribute(value=ast.Name(id="pytest"), attr=attr):
            return attr in CHECKS
        case ast.Attribute(value=ast.Attribute(attr="mark"), attr=attr):
            return attr in ASSERTING_MARKS
    return False


def _used(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a function calls or passes on, and those of its fixtures."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Call(func=ast.Attribute(attr="usefixtures"), args=args):
                yield from (str(arg.value) for arg in args if isinstance(arg, ast.Constant))


def _places(path: Path, name: str) -> Iterator[Place]:
    """Yield the possible meanings of a name in a file."""
    here = module(path)
    if name in here.defined:
        yield path, name
        return
    if name in here.imported:
        origin, original = here.imported[name]
        if original in module(origin).defined:
            yield origin, original
            return
    others = {origin for origin, _ in here.imported.values()} | set(_conftests(path))
    yield from ((other, name) for other in sorted(others) if name in module(other).defined)


def _conftests(path: Path) -> Iterator[Path]:
    """Yield the files whose fixtures a test uses without importing them."""
    for folder in path.parents:
        if not folder.is_relative_to(TESTS):
            return
        if (folder / "conftest.py").exists():
            yield folder / "conftest.py"
