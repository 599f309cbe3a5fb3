"""Which Pythons the tests are run on."""

import sys
from pathlib import Path

import pytest

from tools import pythons
from tools.pythons import Python, asked, candidates, groups_for, oldest_of_each


def a_python(*version: int) -> Python:
    major, minor, patch = version
    return Python(version=(major, minor, patch), program=Path(f"/{major}.{minor}.{patch}"))


def test_the_oldest_of_each_minor_version_from_3_11_on_is_used() -> None:
    found = [a_python(3, 13, 0), a_python(3, 11, 7), a_python(3, 10, 1), a_python(3, 11, 2)]
    assert [python.name for python in oldest_of_each(found)] == ["3.11.2", "3.13.0"]


def test_interpreters_are_searched_on_the_path_and_in_the_folder_of_pyenv(tmp_path: Path) -> None:
    on_path = tmp_path / "bin" / "python3.12"
    of_pyenv = tmp_path / "pyenv" / "versions" / "3.13.0" / "bin" / "python3"
    for program in (on_path, on_path.with_name("python3.12-config"), of_pyenv):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch()
    environment = {
        "PATH": f"{on_path.parent}:{tmp_path / 'absent'}",
        "PYENV_ROOT": str(tmp_path / "pyenv"),
    }
    assert list(candidates(environment)) == [on_path, of_pyenv]


def test_an_interpreter_reports_its_version_and_a_broken_shim_does_not_count(
    tmp_path: Path,
) -> None:
    here = asked(Path(sys.executable))
    assert here is not None
    assert here.version == sys.version_info[:3]
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert asked(shim) is None
    assert asked(tmp_path / "absent") is None


def test_each_runs_the_unit_and_the_compatibility_tests(tmp_path: Path) -> None:
    groups = groups_for(tmp_path)
    assert [group.name for group in groups] == ["unit", "compatibility"]
    assert {group.python for group in groups} == {tmp_path}


@pytest.mark.parametrize(("is_ci", "code"), [("", 0), ("true", 1)])
def test_a_single_python_is_a_failure_if_ci_is_set(
    is_ci: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", is_ci)
    monkeypatch.setattr(pythons, "found_here", lambda _: [a_python(3, 11, 2)])
    monkeypatch.setattr(sys, "argv", ["pythons", "--list"])
    assert pythons.main() == code
    assert "pythons: 3.11.2" in capsys.readouterr().out
