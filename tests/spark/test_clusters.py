"""Queries run on clusters of several processes, and continue when one of these is killed."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.complaints import WITHOUT_LEADERS
from tests.spark.cluster_program import SOURCE, TARGET
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import NOW_MS, records
from tools.repository import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.long, WITHOUT_LEADERS]

HOST = "127.0.0.1"
RECORDS = 400
PARTITIONS = 4
SECONDS_MAX = 600
HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"


def environment() -> dict[str, str]:
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return {
        **os.environ,
        "PYTHONPATH": path,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
    }


def a_free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def spark_class(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of Spark's own classes until the end of the block."""
    process = subprocess.Popen(
        [HOME / "bin" / "spark-class", *words],
        env={**environment(), "SPARK_WORKER_DIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Run a master and two workers; yield the address of the master."""
    port = a_free_port()
    master = f"spark://{HOST}:{port}"
    at = ("--host", HOST)
    with ExitStack() as stack:
        words = (f"{DEPLOY}.master.Master", *at, "--port", str(port), "--webui-port", "0")
        stack.enter_context(spark_class(folder, *words))
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert time.monotonic() < deadline, "the master listens in time"
        limits = ("--cores", "1", "--memory", "1g", "--webui-port", "0")
        for _ in range(2):
            worker = (f"{DEPLOY}.worker.Worker", *at, *limits, master)
            stack.enter_context(spark_class(folder, *worker))
        yield master


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


@pytest.mark.parametrize("kind", ["local-cluster", "standalone"])
@pytest.mark.requirement("PIPE-1")
def test_two_executors_read_and_write_and_one_may_die(
    kind: str, topics: Topics, tmp_path: Path
) -> None:
    names = [f"{name}" for name in (SOURCE, TARGET)]
    there = {one.name for one in topics.admin.topics.list()}
    for name in names:
        if name in there:
            topics.admin.topics.delete(name)
        topics.create(name, PARTITIONS)
    for partition in range(PARTITIONS):
        size = RECORDS // PARTITIONS
        topics.count(SOURCE, partition, partition * size, (partition + 1) * size, NOW_MS)
    with ExitStack() as stack:
        master = "local-cluster[2,1,768]"
        if kind == "standalone":
            master = stack.enter_context(standalone(tmp_path / "workers"))
        words = ["-m", "tests.spark.cluster_program", master, topics.bootstrap, str(tmp_path)]
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=environment(),
            timeout=SECONDS_MAX,
            check=False,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"executors": 2, "rows": RECORDS, "killed": True}
    copied = {int(one.value or b"") for one in records(topics, TARGET)}
    assert copied == set(range(RECORDS))
