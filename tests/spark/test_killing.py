"""A query that is killed with kill -9 at any step of a micro-batch loses nothing.

The source is exactly once, as its table shows. By default the sink is at least once: records of the
one killed micro-batch may be duplicated, no others. With exactly-once they are there once; that the
at-least-once sink does duplicate them shows that the killing works.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.complaints import WITHOUT_LEADERS
from tests.spark.committed import committed
from tests.spark.conftest import Topics
from tests.spark.killing import ONCE_STEPS, ROWS_PER_BATCH, SINK_STEPS, SOURCE_STEPS
from tests.spark.pipeline_runs import NOW_MS, records
from tools.repository import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.long, WITHOUT_LEADERS]

RECORDS = 300
SECONDS_MAX = 600
KILLED = -9


def run(topics: Topics, folder: Path, step: str) -> tuple[int, str]:
    words = [sys.executable, "-m", "tests.spark.killing", topics.bootstrap, str(folder), step]
    done = subprocess.run(words, cwd=ROOT, timeout=SECONDS_MAX, check=False, capture_output=True)
    return done.returncode, done.stderr.decode()[-2_000:]


@pytest.mark.parametrize("step", [*SOURCE_STEPS, *SINK_STEPS, *ONCE_STEPS])
@pytest.mark.requirement("PIPE-1")
def test_a_query_that_is_killed_at_a_step_loses_nothing(
    step: str, topics: Topics, tmp_path: Path
) -> None:
    topics.count(topics.create(f"numbers-{step}"), 0, 0, RECORDS, NOW_MS)
    topics.create(f"copied-{step}")
    code, said = run(topics, tmp_path, step)
    assert code == KILLED, said
    assert (tmp_path / "killed").exists()
    code, said = run(topics, tmp_path, step)
    assert code == 0, said
    if step in SOURCE_STEPS:
        table = pq.read_table(tmp_path / "tables" / "numbers")
        assert sorted(int(one) for one in table["value"].to_pylist()) == list(range(RECORDS))
        return
    if step in ONCE_STEPS:
        assert committed(topics, f"copied-{step}") == list(range(RECORDS))
        return
    counts = Counter(int(one.value or b"") for one in records(topics, f"copied-{step}"))
    assert sorted(counts) == list(range(RECORDS))
    twice = {number for number, count in counts.items() if count > 1}
    killed = set(range(ROWS_PER_BATCH, 2 * ROWS_PER_BATCH))
    expected = {
        "sink-before": 0,
        "sink-middle": ROWS_PER_BATCH // 2,
        "sink-after": ROWS_PER_BATCH,
        "sink-commit": ROWS_PER_BATCH,
    }
    assert len(twice) == expected[step]
    assert twice <= killed
