"""What no file of the repository may contain, and how long a file may be."""

import re
from collections.abc import Iterator
from pathlib import Path

from tools.repository import ROOT, python_files, relative, tracked_files

LINES_MAX = 700
CODE_SUFFIXES = {".py", ".sh", ".toml", ""}

# Put together here, so that this file passes its own tests.
_LATER = re.compile(rf"\b(TO{''}DO|FIX{''}ME)\b(?!\(#\d+\))")
_MACHINE = re.compile(r"(?<![\w.~-])/" + r"(work|root|home/\w+)/")
_WRONG_NAME = re.compile(r"pip3? install (-U |--upgrade )?" + r"kafkaesque(?!-broker)\b")
_HOST = re.compile(r"https?://|--(extra-)?index-url|--find-links|--trusted-host")


def lines(paths: list[Path]) -> Iterator[tuple[str, str]]:
    """Yield every line of these text files with `file:number`."""
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield f"{relative(path)}:{number}", line


def places(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """Return where a pattern is found."""
    return [place for place, line in lines(paths) if pattern.search(line)]


def text_files() -> list[Path]:
    """Return the tracked files that hold text, not bytes."""
    return [path for path in tracked_files() if b"\0" not in path.read_bytes()[:8_192]]


def test_nothing_is_postponed_without_an_issue() -> None:
    assert places(_LATER, [path for path in text_files() if path.suffix in CODE_SUFFIXES]) == []


def test_no_python_file_is_longer_than_700_lines() -> None:
    long = [
        relative(path)
        for path in python_files("src", "tests", "bench", "tools", "examples")
        if len(path.read_text().splitlines()) > LINES_MAX
    ]
    assert long == []


def test_no_file_names_a_path_of_a_developers_machine() -> None:
    assert places(_MACHINE, text_files()) == []


def test_no_page_says_to_install_a_package_of_another_project() -> None:
    assert places(_WRONG_NAME, text_files()) == []


def test_requirement_files_pin_versions_with_hashes_and_name_no_host() -> None:
    files = sorted((ROOT / "requirements").glob("*.txt"))
    assert [file.name for file in files] == ["base.txt", "dev.txt", "spark.txt", "uv.txt"]
    assert places(_HOST, files) == []
    for file in files:
        wanted = re.findall(r"^[A-Za-z0-9].*$", file.read_text(), re.MULTILINE)
        assert wanted
        assert all(re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ ?(;.*)?\\$", line) for line in wanted)
    assert not (ROOT / "uv.lock").exists()


def test_lines_have_no_trailing_spaces() -> None:
    assert places(re.compile(r"[ \t]+$"), text_files()) == []
