"""`kafkaesque cluster up`: one command, several brokers, and again in the same folders."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kafkaesque.client.admin import Admin

SECONDS_MAX = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


def end(process: subprocess.Popen[str], _: list[str]) -> None:
    """Stop the command."""
    process.send_signal(signal.SIGTERM)


def interrupt(process: subprocess.Popen[str], lines: list[str]) -> None:
    """Act like a terminal on ctrl-C: signal all processes in its foreground."""
    pids = [int(line.split("\t")[2]) for line in lines[:-1]]
    # Two signals end a broker like a crash, if it has not stopped between them.
    assert process.pid not in map(os.getpgid, pids), "brokers are signalled only once"
    os.killpg(process.pid, signal.SIGINT)


def up_and_down(
    folder: Path, brokers: int, stop: Callable[[subprocess.Popen[str], list[str]], None] = end
) -> tuple[list[int], list[str]]:
    """Start a cluster, list its brokers, and stop it; return the list, and what it printed."""
    command = [sys.executable, "-m", "kafkaesque", "cluster", "up", "--port", "0"]
    command += ["--brokers", str(brokers), "--data", str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(brokers + 1)]
            found = re.search(r"bootstrap: (\S+)", lines[-1])
            assert found is not None, lines
            client = AdminClient({"bootstrap.servers": found[1]})
            known = client.list_topics(timeout=SECONDS_MAX).brokers
            stop(process, lines)
            assert process.wait(SECONDS_MAX) == 0
        finally:
            process.terminate()  # if it has not ended by now, we would wait for it
    return sorted(known), lines


@pytest.mark.long
def test_a_cluster_starts_grows_and_restarts_in_its_folders(folder: Path) -> None:
    assert up_and_down(folder, 1)[0] == [1]
    numbers, lines = up_and_down(folder, 3)
    assert numbers == [1, 2, 3]
    assert [line.split("\t")[0] for line in lines[:3]] == ["1", "2", "3"]
    assert up_and_down(folder, 3)[0] == [1, 2, 3]


def test_ctrl_c_in_a_terminal_stops_all_brokers_cleanly(folder: Path) -> None:
    assert up_and_down(folder, 3, stop=interrupt)[0] == [1, 2, 3]


def test_any_one_of_three_may_be_lost_when_the_addresses_are_given(folder: Path) -> None:
    voters: list[int] = []

    def look(process: subprocess.Popen[str], lines: list[str]) -> None:
        with Admin(lines[-1].split()[1]) as admin:
            quorum = admin.brokers.quorum()
        assert quorum is not None
        voters.extend(one.node for one in quorum.voters)
        end(process, lines)

    up_and_down(folder, 3, stop=look)
    assert sorted(voters) == [1, 2, 3]
