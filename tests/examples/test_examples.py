"""Every example runs, prints what it does, and succeeds."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache_kafka import apache_kafka
from tools.repository import ROOT

pytestmark = pytest.mark.compat

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem != "__init__")
LINES_MAX = 60
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    """Where Apache Kafka listens."""
    with apache_kafka() as address:
        yield address


def run(folder: Path, name: str, *words: str) -> None:
    """Copy an example and run it to its end, like a user; return its output."""
    copy = Path(shutil.copy(ROOT / "examples" / f"{name}.py", folder))
    done = subprocess.run(
        [sys.executable, copy.name, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("All is as it should be.\n")


@pytest.mark.requirement("REP-7")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_from_any_folder_and_is_short(name: str, tmp_path: Path) -> None:
    run(tmp_path, name)
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < LINES_MAX


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_on_apache_kafka_too(name: str, kafka: str, tmp_path: Path) -> None:
    run(tmp_path, name, kafka)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_how_to_links_to_its_example(name: str) -> None:
    pages = (ROOT / "docs" / "how-to").glob("*.md")
    assert any(f"examples/{name}.py" in page.read_text() for page in pages)


@pytest.mark.parametrize("name", ["at_most_once", "at_least_once", "exactly_once"])
def test_code_shown_on_a_page_about_delivery_is_in_its_example(name: str) -> None:
    page = (ROOT / "docs" / "how-to" / f"{name.replace('_', '-')}.md").read_text()
    shown = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    program = (ROOT / "examples" / f"{name}.py").read_text()
    lines = [line.strip() for line in program.splitlines()]
    assert len(shown) >= 2
    for part in shown:
        wanted = [line.strip() for line in part.splitlines()]
        spans = (lines[start : start + len(wanted)] for start in range(len(lines)))
        assert wanted in spans, part
