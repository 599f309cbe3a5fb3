"""`kafkaesque cluster up`: one command, several brokers, and again in the same folders."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

STOP_SECONDS_MAX = 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


def up_and_down(folder: Path, brokers: int) -> tuple[list[int], list[str]]:
    """Start a cluster, look who is in it, and stop it; return that, and what it printed."""
    command = [sys.executable, "-m", "kafkaesque", "cluster", "up", "--port", "0"]
    command += ["--brokers", str(brokers), "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(brokers + 1)]
        found = re.search(r"bootstrap: (\S+)", lines[-1])
        assert found is not None, lines
        known = AdminClient({"bootstrap.servers": found[1]}).list_topics(timeout=20).brokers
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS_MAX) == 0
    return sorted(known), lines


def test_a_cluster_starts_grows_and_starts_again_in_its_folders(folder: Path) -> None:
    assert up_and_down(folder, 1)[0] == [1]
    numbers, lines = up_and_down(folder, 3)
    assert numbers == [1, 2, 3]
    assert [line.split("\t")[0] for line in lines[:3]] == ["1", "2", "3"]
    assert up_and_down(folder, 3)[0] == [1, 2, 3]
