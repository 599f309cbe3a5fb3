"""Every test function asserts something: one that only runs code is green whatever it does."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.house.asserting import without_assertion
from tools.repository import ROOT, python_files

ALLOWED: Mapping[str, str] = {}
"""Tests that can only fail by an error, `file::name`, each with the reason why that is enough."""


def test_every_test_asserts_something() -> None:
    files = [path for path in python_files("tests") if path.name.startswith("test_")]
    assert set(without_assertion(files)) == ALLOWED.keys(), "assert the outcome"


SILENT = """
def show(value): print(value)
def test_a(): show(1)
class TestB:
    def test_b(self): show(2)
"""
SPEAKING = """
import pytest
from tests.log.logs import recover
from tests.patterns.waiting import run
def is_one(value): assert value == 1
def indirectly(value): is_one(value)
@pytest.fixture
def checked():
    yield
    assert True
def test_itself(): assert 1
def test_by_an_error(): pytest.raises(OSError, open, "nowhere")
def test_by_a_helper(): indirectly(1)
def test_by_a_fixture(checked): pass
@pytest.mark.usefixtures("checked")
def test_by_a_fixture_that_is_only_named(): pass
def test_within():
    async def story(): assert 1
    run(story())
@pytest.mark.event("disk_full")
def test_by_what_is_provoked(): pass
"""


@pytest.mark.parametrize(
    ("text", "found"), [(SILENT, ["test_a", "test_b"]), (SPEAKING, [])], ids=["silent", "speaking"]
)
def test_a_test_that_cannot_fail_is_found(text: str, found: list[str], tmp_path: Path) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(text)
    assert [name.rpartition("::")[2] for name in without_assertion([path])] == found


def test_a_helper_is_followed_into_its_file(tmp_path: Path) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(
        "from tests.sim.test_broker_world import wait\ndef test_a(): wait(None, lambda: True)\n"
    )
    assert without_assertion([path]) == []
    assert (ROOT / "tests" / "sim" / "test_broker_world.py").exists()
