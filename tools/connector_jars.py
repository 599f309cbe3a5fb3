"""Gets the JARs of Spark's own Kafka connector with Maven, to measure and test beside ours.

They are kept in .cache/spark-connector. Of each JAR the first available version is taken: the
connector of an earlier Spark also runs on a later one.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.repository import ROOT

JARS = ROOT / ".cache" / "spark-connector"
SECONDS_MAX = 300
_SPARK = ("4.3.0", "4.2.0", "4.1.0-preview1")
WANTED: dict[str, tuple[str, ...]] = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": _SPARK,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": _SPARK,
    "org.apache.kafka:kafka-clients": ("3.9.2",),
    "org.apache.commons:commons-pool2": ("2.13.1",),
}


def jars() -> list[Path]:
    """Return the JARs, or none unless all of them exist."""
    found = sorted(JARS.glob("*.jar"))
    return found if len(found) == len(WANTED) else []


def get(artifact: str, versions: tuple[str, ...]) -> bool:
    """Fetch one JAR in the first available version."""
    for version in versions:
        words = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}:{version}"]
        done = subprocess.run(
            [*words, f"-DoutputDirectory={JARS}"],
            cwd=JARS,
            check=False,
            capture_output=True,
            timeout=SECONDS_MAX,
            env={**os.environ, "MAVEN_ARGS": ""},
        )
        if done.returncode == 0:
            print(f"{artifact}: {version}")
            return True
    print(f"{artifact}: not available")
    return False


def main() -> int:
    """Fetch what is missing."""
    if jars():
        return 0
    if shutil.which("mvn") is None:
        print("Maven is not installed")
        return 1
    JARS.mkdir(parents=True, exist_ok=True)
    missing = [one for one, versions in WANTED.items() if not get(one, versions)]
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
