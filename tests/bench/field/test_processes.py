"""Processes that the harness starts: their processor time, and how they end."""

import os
import sys
from pathlib import Path

import pytest

from bench.field.processes import NotStarted, ServerProcess, free_port, halves, pinned, tree

BURNED_SECONDS = 0.5
COUNTED_SECONDS = 0.4
"""The kernel counts ticks of 10 ms and drops the remainder of each process."""

_BURN = f"import time\nwhile time.process_time() < {BURNED_SECONDS}: pass"
_SERVE = """
import signal, socket, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[2]], check=True)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
signal.pause()
"""


def test_the_time_of_ended_children_is_counted(tmp_path: Path) -> None:
    port = free_port()
    process = ServerProcess([sys.executable, "-c", _SERVE, str(port), _BURN], tmp_path)
    try:
        process.await_port(port)
        assert process.cpu_seconds() >= COUNTED_SECONDS
        assert process.resident_bytes() > 1_000_000
    finally:
        process.stop()
    assert process.resident_bytes() == 0


def test_a_server_that_ends_at_once_reports_its_output(tmp_path: Path) -> None:
    process = ServerProcess(["sh", "-c", "echo cannot do that; exit 1"], tmp_path)
    with pytest.raises(NotStarted, match="cannot do that"):
        process.await_port(free_port())
    assert process.resident_bytes() == 0


def test_a_tree_includes_its_root() -> None:
    assert os.getpid() in tree(os.getpid())
    assert os.getpid() in tree(os.getppid())


def test_brokers_and_clients_get_separate_cores_and_the_affinity_is_restored() -> None:
    before = os.sched_getaffinity(0)
    brokers, clients = halves()
    assert brokers | clients == before
    with pinned(brokers):
        assert os.sched_getaffinity(0) == brokers
    assert os.sched_getaffinity(0) == before
