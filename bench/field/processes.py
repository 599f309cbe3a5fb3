"""Processes that we started: their memory and processor time, and how to stop them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafkaesque.testing.ports import HOST, HeldPort

START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 30
_POLL_SECONDS = 0.005
_HELD: list[HeldPort] = []
_KIB = 1024
_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS = slice(11, 15)
"""The user and kernel time of a process, and of its children that have ended."""


class Failed(Exception):
    """A driver failed; holds its own message."""


class NotStarted(Exception):
    """A system did not start; holds its last output."""


def free_port() -> int:
    """Return a loopback port that is not returned again while this program runs.

    A server may take long to listen there, and any other listener would be mistaken for it.
    """
    held = HeldPort()
    _HELD.append(held)
    return held.port


def tree(pid: int) -> set[int]:
    """Return a process and all its descendants."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    found, size = {pid}, 0
    while len(found) > size:  # ends: the number of processes bounds the depth
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found


class ServerProcess:
    """One server that we started, in its own process group, with its output in a file."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._output = folder / "output.txt"
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=None if environment is None else {**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def await_port(self, port: int) -> None:
        """Return when it accepts connections; otherwise stop it and raise NotStarted."""
        try:
            self._await_port(port)
        except BaseException:  # also on SIGTERM: no one else stops it yet
            self.stop()
            raise

    def _await_port(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex((HOST, port)) == 0:
                    return
            time.sleep(_POLL_SECONDS)
        lines = self._output.read_text(errors="replace").splitlines()
        raise NotStarted(" / ".join(lines[-3:]) or "it printed nothing")

    def cpu_seconds(self) -> float:
        """Return the processor time of it and its children so far, including ended ones."""
        total = 0.0
        for pid in tree(self._process.pid):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(int(ticks) for ticks in stat[_CPU_FIELDS]) / _TICKS
            except (FileNotFoundError, ProcessLookupError):
                continue
        return total

    def resident_bytes(self) -> int:
        """Return the memory of it and its children now."""
        total = 0
        for pid in tree(self._process.pid):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            rows = [row for row in status.splitlines() if row.startswith("VmRSS:")]
            total += sum(int(row.split()[1]) * _KIB for row in rows)
        return total

    def kill(self) -> None:
        """Kill it at once, like a crash."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """Stop it gracefully, and after a while kill it with its children."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def halves() -> tuple[set[int], set[int]]:
    """Return the cores for a broker and those for its clients."""
    cores = sorted(os.sched_getaffinity(0))
    middle = max(1, len(cores) // 2)
    return set(cores[:middle]), set(cores[middle:]) or set(cores)


@contextmanager
def pinned(cores: set[int]) -> Iterator[None]:
    """Run processes started meanwhile only on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
