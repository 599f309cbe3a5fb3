"""Runs the unit and compatibility tests on every Python on the machine, 3.11 and later.

It looks on PATH, in pyenv's folder and in uv's list; only packages are downloaded. Of each minor
version it takes the oldest, because that one lacks most, and gives it an environment in
`.cache/venvs` from the pinned requirements. It skips the version of `.venv`, which `make test`
runs on. If CI is set, a single version is a failure, because nothing was compared.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.repository import ROOT
from tools.run_tests import GROUPS, Group, exit_code, failures, run_all, table

OLDEST = (3, 11)
GROUP_NAMES = ("unit", "compatibility")
VENVS = ROOT / ".cache" / "venvs"
REQUIREMENTS = ROOT / "requirements" / "dev.txt"
ASK_SECONDS_MAX = 30
"""A shim may start a whole shell before it finds that it has no interpreter."""
_NAME = re.compile(r"python3(\.\d+)?")
_ASK = """\
import json, sys, sysconfig
usual = (
    sys.implementation.name == "cpython"
    and sys.version_info.releaselevel == "final"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
print(json.dumps([list(sys.version_info[:3]), usual, sys._base_executable]))
"""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Python:
    """One interpreter on this machine."""

    version: tuple[int, int, int]
    program: Path

    @property
    def name(self) -> str:
        """Its version as usually written."""
        return ".".join(map(str, self.version))


def candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield possible interpreters: on PATH and in the folder of pyenv."""
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and Path(folder).is_dir():
            yield from (path for path in Path(folder).iterdir() if _NAME.fullmatch(path.name))
    home = Path(environment.get("HOME", "~")).expanduser()
    pyenv = Path(environment.get("PYENV_ROOT", home / ".pyenv"))
    yield from sorted(pyenv.glob("versions/*/bin/python3"))


def known_to_uv(uv: str) -> Iterator[Path]:
    """Yield the interpreters that uv has installed or knows of."""
    words = ("python", "list", "--offline", "--only-installed", "--output-format", "json")
    done = subprocess.run([uv, *words], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        yield from (Path(found["path"]) for found in json.loads(done.stdout))


def asked(program: Path) -> Python | None:
    """Query an interpreter; None if it does not run or is of another kind."""
    try:
        done = subprocess.run(
            [str(program), "-I", "-c", _ASK],
            capture_output=True,
            text=True,
            check=False,
            timeout=ASK_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    version, is_usual, base = json.loads(done.stdout)
    if not is_usual:
        return None
    return Python(version=tuple(version), program=Path(base))


def oldest_of_each(found: Iterable[Python]) -> list[Python]:
    """Return the oldest of each supported minor version, in order."""
    chosen: dict[tuple[int, int], Python] = {}
    for python in sorted(found):
        if python.version[:2] >= OLDEST:
            chosen.setdefault(python.version[:2], python)
    return [chosen[minor] for minor in sorted(chosen)]


def found_here(uv: str) -> list[Python]:
    """Return one Python of each minor version on this machine."""
    programs = {path.resolve() for path in (*candidates(os.environ), *known_to_uv(uv))}
    # A shim resolves to a script that serves many names, so query it by its own name.
    programs |= {path for path in candidates(os.environ) if not path.is_symlink()}
    answers = [asked(program) for program in sorted(programs)]
    return oldest_of_each(python for python in answers if python is not None)


def usable_uv() -> str:
    """Return the machine's uv, else the one that `make setup` installed."""
    private = ROOT / ".cache" / "uv-venv" / "bin" / "uv"
    return str(private) if private.exists() else "uv"


def environment_of(python: Python, uv: str) -> Path:
    """Create or update the environment of one Python; return its interpreter."""
    folder = VENVS / f"{python.version[0]}.{python.version[1]}"
    interpreter = folder / "bin" / "python"
    there = asked(interpreter) if interpreter.exists() else None
    if there is None or there.version != python.version:
        words = ("venv", "--quiet", "--clear", "--no-project", "--python", str(python.program))
        subprocess.run([uv, *words, str(folder)], check=True)
    install = [uv, "pip", "sync", "--quiet", "--python", str(interpreter)]
    subprocess.run([*install, "--require-hashes", str(REQUIREMENTS)], check=True)
    ours = [uv, "pip", "install", "--quiet", "--python", str(interpreter), "--no-deps"]
    subprocess.run([*ours, "--no-build-isolation", "-e", str(ROOT)], check=True)
    return interpreter


def groups_for(interpreter: Path) -> list[Group]:
    """Return the groups that every Python must pass, run with this one."""
    return [group.run_by(interpreter) for group in GROUPS if group.name in GROUP_NAMES]


def main() -> int:
    """Find the interpreters, print them, and run the groups on each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="only list the interpreters")
    parser.add_argument("--only", metavar="3.N", help="only this minor version; .venv's is allowed")
    options = parser.parse_args()
    uv = usable_uv()
    pythons = found_here(uv)
    print("pythons: " + (", ".join(python.name for python in pythons) or "none"), flush=True)
    if len(pythons) < 2 and os.environ.get("CI"):
        print(
            "pythons: CI is set, and there is only one interpreter to test on; install another",
            flush=True,
        )
        return 1
    if options.list:
        return 0
    failed = []
    for python in pythons:
        minor = f"{python.version[0]}.{python.version[1]}"
        if options.only not in (None, minor):
            continue
        if options.only is None and python.version == sys.version_info[:3]:
            print(f"== Python {python.name}: that of .venv, on which `make test` runs")
            continue
        print(f"== Python {python.name}", flush=True)
        interpreter = environment_of(python, uv)
        outcomes, minutes = run_all(groups_for(interpreter))
        lines = table(outcomes, minutes)
        print("\n".join([*lines, *failures(outcomes)]), flush=True)
        if exit_code(outcomes):
            failed.append(python.name)
    if failed:
        print(f"pythons: FAILED on {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
