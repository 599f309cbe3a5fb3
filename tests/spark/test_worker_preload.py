"""Workers start with everything loaded that tasks need."""

import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.spark

SECONDS_MAX = 300
LOADED = ("kafkaesque.spark.record_loops", "kafkaesque.spark.write_loops")


def test_preloading_loads_the_loops_and_not_pandas() -> None:
    """Arrow imports pandas for some of its calls, which takes a second in every process."""
    program = (
        "import sys; from kafkaesque.spark.worker_preload import warm; warm(); "
        "from kafkaesque.spark.write_loops import encode_rows as loop; "
        "print(len(loop.signatures), 'pandas' in sys.modules)"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.stdout.split() == ["1", "False"]


def test_a_worker_starts_with_the_loops_loaded(spark: Any) -> None:
    def is_loaded(_: int) -> bool:
        return all(name in sys.modules for name in LOADED)

    assert spark.sparkContext.parallelize([0], 1).map(is_loaded).collect() == [True]
