"""The page of bug classes names existing tests, and every chaos story runs."""

import re
from functools import cache

from tests.chaos import stories
from tests.chaos.findings import Kind
from tools.repository import ROOT, python_files

PAGE = ROOT / "docs" / "reference" / "bug-classes.md"
ASKED_FOR = {*range(1, 32), *range(35, 42)}
_ROW = re.compile(r"^\| B(\d+) \| .* \| (.*) \|$", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"make [a-z]+|kafkaesque [a-z]+")


@cache
def rows() -> dict[int, str]:
    """What prevents each class, by its number."""
    found: dict[int, str] = {}
    for number, kept_out in _ROW.findall(PAGE.read_text()):
        found[int(number)] = f"{found.get(int(number), '')} {kept_out}"
    return found


def known_names() -> set[str]:
    """Everything that the page may name."""
    tests = re.compile(r"def (test_\w+)")
    found = {name for path in python_files("tests") for name in tests.findall(path.read_text())}
    found |= {path.stem for path in (ROOT / "tests" / "scenarios").glob("*.txt")}
    found |= {story.play.__name__ for story in stories.ALL}
    return found | {kind.name for kind in Kind}


def test_every_class_has_its_row() -> None:
    assert rows().keys() >= ASKED_FOR


def test_every_name_in_the_table_exists() -> None:
    names = {name for row in rows().values() for name in _NAME.findall(row)}
    unknown = {
        name
        for name in names - known_names()
        if not _COMMAND.fullmatch(name) and not (ROOT / name).exists()
    }
    assert unknown == set()


def test_every_story_is_in_the_rows_of_its_classes() -> None:
    missing = {
        (story.play.__name__, number)
        for story in stories.ALL
        for number in story.classes
        if f"`{story.play.__name__}`" not in rows()[int(number.removeprefix("B"))]
    }
    assert missing == set()
