"""The location of the repository, and the files that belong to it."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "kafkaesque"
REFERENCE = ROOT / "docs" / "reference"


def tracked_files() -> list[Path]:
    """Return every existing file that is, or would be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = sorted({ROOT / name for name in listed.split("\0") if name})
    return [path for path in paths if path.is_file()]


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below the given folders of the repository, sorted."""
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    )


def module_name(path: Path) -> str:
    """Return the dotted name by which a Python file of the repository is imported."""
    base = ROOT / "src" if path.is_relative_to(ROOT / "src") else ROOT
    parts = list(path.relative_to(base).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(path: Path) -> Iterator[str]:
    """Yield everything a file imports, as dotted names; `from a import b` yields a and a.b."""
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)


def relative(path: Path) -> str:
    """Return the path relative to the root of the repository, with forward slashes."""
    return path.relative_to(ROOT).as_posix()
