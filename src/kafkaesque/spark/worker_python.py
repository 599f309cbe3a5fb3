"""The Python with which Spark starts its processes on this machine, and why it is a script.

Spark puts `pyspark.zip` first on the path of every Python process. It holds no bytecode, so each
process first compiles PySpark, which takes a second of CPU time, and Spark waits only 10 s for the
one that plans a stream. The script takes the archive off the path: the same PySpark is installed
beside it, compiled.
"""

import hashlib
from pathlib import Path

from kafkaesque.spark.scripts import write_script

_SCRIPT = """\
#!/bin/sh
kept=
IFS=:
set -f
for entry in $PYTHONPATH; do
    [ "$entry" = "{archive}" ] || kept="$kept${{kept:+:}}$entry"
done
unset IFS
set +f
export PYTHONPATH="$kept"
exec "{python}" "$@"
"""


def worker_python(python: str, pyspark: Path, cache: Path) -> str:
    """Return the value for `PYSPARK_PYTHON`: `python` with this installed PySpark.

    That is a script below `cache`; or `python` itself if the script cannot be written.
    """
    archive = pyspark / "python" / "lib" / "pyspark.zip"
    text = _SCRIPT.format(archive=archive, python=python)
    # Several environments may run at once, each with its own script.
    script = cache / hashlib.sha256(text.encode()).hexdigest()[:16] / "python"
    try:
        write_script(script, text)
    except OSError:
        return python
    return str(script)
