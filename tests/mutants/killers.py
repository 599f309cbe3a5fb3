"""What noticed each planted bug last time: only a hint where to look first.

`killers.toml` has a test or a seed for each bug. A hunt tries it first, and if it does not notice
the bug this time, everything else.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_name("killers.toml")
_HEAD = (
    "# Written by `python -m tests.mutants --update`: what noticed each planted bug last time.\n"
)


def read(file: Path = FILE) -> dict[str, str]:
    """Return what noticed each bug, by the bug's name."""
    return tomllib.loads(file.read_text()) if file.exists() else {}


def write(killers: Mapping[str, str], file: Path = FILE) -> None:
    """Write them in order."""
    rows = [f"{_quoted(name)} = {_quoted(by)}\n" for name, by in killers.items()]
    file.write_text("".join([_HEAD, *rows]))


def _quoted(text: str) -> str:
    """Return a string as TOML, which accepts JSON's syntax."""
    return json.dumps(text, ensure_ascii=False)
