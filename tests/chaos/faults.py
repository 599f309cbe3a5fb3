"""Faults injected into a process from outside, and which of them this machine allows."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_LOOK_SECONDS = 0.01
_ATTACH_SECONDS_MAX = 10.0
_FOR_ALL = {"cc"}
"""Faults that need no root."""
SYNCS = "fsync,fdatasync,syncfs"


@cache
def is_root() -> bool:
    """Whether namespaces, mounts and tracing of other processes are allowed."""
    return os.geteuid() == 0


def missing(*programs: str) -> str:
    """Return why a fault cannot be injected here; empty if it can."""
    if set(programs) - _FOR_ALL and not is_root():
        return "needs root"
    absent = [program for program in programs if shutil.which(program) is None]
    return f"needs {', '.join(absent)}" if absent else ""


@contextmanager
def failing_calls(pid: int, calls: str, error: str) -> Iterator[None]:
    """Let system calls of a process fail while the block runs."""
    tracer = subprocess.Popen(
        [
            *("strace", "-f", "-qq", "-p", str(pid)),
            *("-e", f"trace={calls}", "-e", f"inject={calls}:error={error}"),
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until_traced(pid, tracer)
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()


def _wait_until_traced(pid: int, tracer: subprocess.Popen[bytes]) -> None:
    """Wait until all threads are traced: from then on the calls fail."""
    late = time.monotonic() + _ATTACH_SECONDS_MAX
    while time.monotonic() < late and tracer.poll() is None:
        states = [(task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        if all(f"TracerPid:\t{tracer.pid}" in state for state in states):
            return
        time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"cannot trace process {pid}")
