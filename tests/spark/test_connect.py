"""Topics are read and written through Spark Connect, if its requirements are installed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import Topics
from tests.spark.connect_program import ROWS
from tools.repository import ROOT

SECONDS_MAX = 600

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("grpc_status") is None,
        reason="Spark Connect needs grpcio, grpcio-status, googleapis-common-protos and zstandard",
    ),
]


def test_a_query_through_spark_connect_copies_a_topic(topics: Topics, tmp_path: Path) -> None:
    for name in ("connect-in", "connect-out"):
        topics.create(name, 2)
    words = ["-m", "tests.spark.connect_program", topics.bootstrap, str(tmp_path)]
    # Whole paths: workers of a Connect server each run in a folder of their session.
    paths = [str(Path(one).absolute()) for one in sys.path if one]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        timeout=SECONDS_MAX,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"rows": ROWS}
