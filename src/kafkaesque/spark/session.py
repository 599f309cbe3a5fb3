"""A Spark session with the settings that our queries need."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaesque.spark.errors import SparkMissing
from kafkaesque.spark.java import java_home, packaged_java
from kafkaesque.spark.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CACHE = Path.home() / ".cache" / "kafkaesque"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SETTINGS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "kafkaesque.spark.daemon",
    # How long Spark and a Python process wait for each other's messages: the default of 15 s is
    # too short on a busy machine. How long Spark waits for the process to start cannot be set.
    "spark.python.authenticate.socketTimeout": "120s",
    # A checkpoint remembers its provider, so it is chosen before the first run.
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
}
"""Default settings of our sessions."""


def session(
    name: str, *, master: str = "local[2]", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start Spark in this process, or return the running session.

    Raises SparkMissing if Spark or Java is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(
            "Spark is not installed: install kafkaesque-broker with the extra spark"
        ) from error
    home = java_home(os.environ, packaged_java(), _CACHE / "java")
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    # Otherwise Spark's workers run the first python on the path.
    os.environ.setdefault("PYSPARK_PYTHON", python_of_workers(master))
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def python_of_workers(master: str) -> str:
    """Return the Python to start workers with; on other machines, the interpreter itself."""
    import pyspark

    if not master.startswith("local"):
        return sys.executable
    return worker_python(sys.executable, Path(pyspark.__file__).parent, _CACHE / "python")
