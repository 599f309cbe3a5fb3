"""A Spark session with the settings that our queries want."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaesque.errors import SparkMissing
from kafkaesque.spark.java import java_home, packaged_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SETTINGS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.daemon.module": "kafkaesque.spark.daemon",
    # A checkpoint remembers its provider, so it is chosen before the first run.
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
}
"""What a session of ours has unless it is told otherwise."""


def session(
    name: str, *, master: str = "local[2]", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start Spark in this process, or return the session that runs already.

    Raises SparkMissing if Spark is not installed, or no Java.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(
            "Spark is not installed: install kafkaesque-broker with the extra spark"
        ) from error
    cache = Path.home() / ".cache" / "kafkaesque" / "java"
    home = java_home(os.environ, packaged_java(), cache)
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    # Else Spark's workers run whatever python is first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
