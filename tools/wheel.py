"""Builds the wheel, installs it as a user would, and uses it.

The environment is outside the repository and gets only the wheel and its dependencies by `pip
install`: whatever only works beside the sources or the developers' tools fails here. It runs what
the pages show: `serve` and a round trip, and both programs of the page for testers, the second one
after `pip install pytest`.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.pythons import usable_uv
from tools.repository import ROOT

PAGE = ROOT / "docs" / "how-to" / "test-your-program.md"
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
RUN_SECONDS_MAX = 600.0
"""Downloads may be slow."""
_LOOK_EVERY_S = 0.05
_LISTENS = re.compile(r"kafkaesque listens on .*?:(\d+)")
_ONLY_OURS = ("hypothesis", "hatchling", "aiokafka", "kafka", "pytest")
"""Packages that developers have and users do not."""


class Failed(Exception):
    """The installed package does not do what the pages say."""


class Installed:
    """A user's environment with our wheel in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bin = folder / "venv" / "bin"
        # The caller's environment must not lead back to the sources.
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self._variables = {k: v for k, v in os.environ.items() if k not in hidden}
        self._variables["PATH"] = f"{self._bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"

    def run(self, *words: str, said: str = "") -> str:
        """Run one of its programs, with the given input; return its output."""
        done = subprocess.run(
            [str(self._bin / words[0]), *words[1:]],
            cwd=self._folder,
            env=self._variables,
            input=said,
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS_MAX,
        )
        if done.returncode != 0:
            raise Failed(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Start `kafkaesque serve`, yield its address, and check that it stops cleanly."""
        output = self._folder / "serve.txt"
        command = [str(self._bin / "kafkaesque"), "serve", "--port", "0", "--data", "data"]
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=self._folder, env=self._variables, stdout=file, stderr=file
            )
        try:
            yield f"127.0.0.1:{_port(process, output)}"
            process.terminate()
            code = process.wait(STOP_SECONDS_MAX)
        finally:
            process.kill()
            process.wait(STOP_SECONDS_MAX)
        if code != 0 or "Traceback" in output.read_text():
            raise Failed(f"serve ended with {code}: {output.read_text()}")


def _port(process: subprocess.Popen[bytes], output: Path) -> int:
    deadline = time.monotonic() + START_SECONDS_MAX
    while (found := _LISTENS.search(output.read_text())) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"serve does not listen: {output.read_text()}")
        time.sleep(_LOOK_EVERY_S)
    return int(found[1])


def built(folder: Path) -> Path:
    """Build the wheel into a folder and return it."""
    words = ("-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Installed:
    """Create a clean environment with pip and the wheel, and no developer packages."""
    words = ("venv", "--quiet", "--seed", "--no-project", "--python", sys.executable)
    subprocess.run([usable_uv(), *words, str(folder / "venv")], cwd=folder, check=True)
    user = Installed(folder)
    user.run("pip", "install", "--quiet", str(wheel))
    look = f"import importlib.util as u; print([n for n in {_ONLY_OURS} if u.find_spec(n)])"
    if (there := user.run("python", "-c", look).strip()) != "[]":
        raise Failed(f"a user's environment has {there}")
    place = user.run("python", "-c", "import kafkaesque; print(kafkaesque.__file__)").strip()
    if not Path(place).is_relative_to(folder):
        raise Failed(f"the package was imported from {place}")
    return user


def try_round_trip(user: Installed) -> None:
    """Send a line with the command line and read it back."""
    with user.serving() as bootstrap:
        user.run("kafkaesque", "produce", "greetings", "--bootstrap", bootstrap, said="hello\n")
        words = ("consume", "greetings", "--from", "beginning", "--no-follow")
        read = user.run("kafkaesque", *words, "--bootstrap", bootstrap)
    if read != "hello\n":
        raise Failed(f"hello came back as {read!r}")


def try_page(user: Installed, folder: Path) -> None:
    """Run both programs of the page for testers, the second one with pytest."""
    plain, with_fixtures = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (folder / "program.py").write_text(plain)
    user.run("python", "program.py")
    user.run("pip", "install", "--quiet", "pytest")
    (folder / "test_orders.py").write_text(with_fixtures)
    said = user.run("pytest", "-q", "-W", "error", "test_orders.py")
    if "1 passed" not in said:
        raise Failed(f"pytest said: {said}")


def main() -> int:
    """Build, install, and try everything; print what failed."""
    with tempfile.TemporaryDirectory(prefix="kafkaesque-wheel-") as name:
        folder = Path(name)
        wheel = built(folder)
        print(f"wheel: {wheel.name}, {wheel.stat().st_size // 1024} KiB", flush=True)
        try:
            user = installed(wheel, folder)
            try_round_trip(user)
            try_page(user, folder)
        except Failed as failure:
            print(f"wheel: FAILED: {failure}")
            return 1
    print("wheel: serve, a round trip, kafkaesque.testing.Broker and the fixtures work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
