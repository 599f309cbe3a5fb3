"""Spark's own Kafka connector works against our broker: batch, stream and sink.

Its JARs come from Maven by `python -m tools.connector_jars`; without them this is skipped.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import Topics
from tests.spark.official_program import ROWS
from tools.connector_jars import jars
from tools.repository import ROOT

SECONDS_MAX = 600

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(
        not jars(), reason="no JARs of Spark's own connector; run: python -m tools.connector_jars"
    ),
]


@pytest.mark.requirement("Q-2")
def test_sparks_own_connector_reads_streams_and_writes(topics: Topics, tmp_path: Path) -> None:
    for name in ("official-in", "official-out"):
        topics.create(name, 2)
    words = ["-m", "tests.spark.official_program", topics.bootstrap, str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        timeout=SECONDS_MAX,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"batch": ROWS, "stream": ROWS, "ours": ROWS}
