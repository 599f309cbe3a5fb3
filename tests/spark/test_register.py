"""A session without preparation finds the format, and workers run with the program's Python."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark import plain_program
from tests.spark.conftest import Topics
from tests.spark.pipeline_runs import NOW_MS

pytestmark = pytest.mark.spark

SECONDS_MAX = 300
ROWS = 5


def test_a_program_in_an_environment_that_is_not_on_the_path_registers_the_format(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    """The session of the other tests is needed only for its Java."""
    name = topics.create("plain")
    topics.count(name, 0, 0, ROWS, NOW_MS)
    other = tmp_path / "python3"  # what Spark takes by default, in its search for sources too
    other.write_text("#!/bin/sh\necho the wrong python >&2\nexit 1\n")
    other.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    given = {key: text for key, text in os.environ.items() if key != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, plain_program.__file__, topics.bootstrap, name],
        env={**given, "PATH": path},
        timeout=SECONDS_MAX,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.split()[-1] == str(ROWS)
