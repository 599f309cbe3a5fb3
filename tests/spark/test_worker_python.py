"""How Spark starts its Python processes: the compiled PySpark, and the right interpreter."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.spark.worker_python import worker_python

SAY = "import os, sys; print(os.environ['PYTHONPATH'], sys.executable, sys.argv[1:])"


def said(script: str, path: str, *words: str) -> str:
    done = subprocess.run(
        [script, "-c", SAY, *words],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_only_this_sparks_archive_is_removed_from_the_path(tmp_path: Path) -> None:
    pyspark = tmp_path / "py spark"
    script = worker_python(sys.executable, pyspark, tmp_path / "cache")
    path = f"/a b:{pyspark}/python/lib/pyspark.zip:/other/python/lib/pyspark.zip:/*"
    left = "/a b:/other/python/lib/pyspark.zip:/*"
    assert said(script, path, "a b", "*") == f"{left} {sys.executable} ['a b', '*']"


def test_a_path_with_only_the_archive_becomes_empty(tmp_path: Path) -> None:
    script = worker_python(sys.executable, tmp_path, tmp_path / "cache")
    assert said(script, f"{tmp_path}/python/lib/pyspark.zip") == f"{sys.executable} []"


def test_each_interpreter_has_its_own_script_and_keeps_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    one = worker_python(sys.executable, tmp_path, cache)
    other = worker_python("/usr/bin/other", tmp_path, cache)
    assert one != other
    assert worker_python(sys.executable, tmp_path, cache) == one
    assert said(one, "") == f"{sys.executable} []"


def test_without_a_place_for_the_script_the_interpreter_itself_is_used(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where a folder should be")
    assert worker_python(sys.executable, tmp_path, tmp_path / "cache") == sys.executable


@pytest.mark.spark
def test_the_workers_of_a_session_run_the_installed_pyspark(spark: Any) -> None:
    import pyspark

    def place(_: int) -> str:
        import pyspark

        return pyspark.__file__

    assert spark.sparkContext.parallelize([1], 1).map(place).collect() == [pyspark.__file__]
