"""kafka-python's own integration tests, run against our broker.

They are in its source distribution, which is fetched by the hash that `requirements/dev.txt` pins
and unpacked outside the tree. The distribution leaves out the small module by which the tests start
a broker; a replacement is put beside them: here the broker is ours and runs already.

Some of its tests expect an answer within a second or less. That says something about the machine,
which has other tests to run, and not about the broker: so our copy of them has more time.
"""

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from tools.repository import ROOT

_SECONDS_MAX = 1_200
_KAFKA_VERSION = "4.2.0"
_TIMES = 10
_LIMITED = (
    r"\btimeout=",  # of futures, threads and groups
    r"\b(?:bootstrap|session)_timeout_ms=",
    r"\brequest_timeout_ms=(?=4000)",  # longer than the session
    r"bootstrap\(timeout_ms=",
    r"position\(tp, timeout_ms=",
    r"max_records=600, timeout_ms=",
    r"\bTIMEOUT_MS = ",
    r"send_time\) <= ",  # how late a record may be stamped
)
_LIMITS = re.compile(rf"({'|'.join(_LIMITED)})(\d+)")
_LIMITS_MIN = 20
"""How many its tests have at least; fewer if they were rewritten."""
_READY = "limits.txt"
"""Says that the limits were raised, and how many."""
_SERVICE = """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    pass
"""


def unpacked(cache: Path) -> Path | None:
    """Return the folder with the tests; None where the distribution is not available."""
    pin = _pin()
    folder = cache / pin.split()[0].replace("==", "-").replace("-", "_", 1)
    if not (folder / _READY).exists():
        archive = _fetched(pin, cache)
        if archive is None:
            return None
        with tarfile.open(archive) as tar:
            # Before Python 3.11.4 there are no filters; the archive's hash was checked in any case.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(cache)
        # Without this file the standard library's package of the same name would come first.
        (folder / "test" / "__init__.py").touch()
        (folder / "test" / "service.py").write_text(_SERVICE)
        (folder / _READY).write_text(f"{_raise_limits(folder / 'test' / 'integration')}\n")
    return folder


def run(folder: Path, port: int, report: Path, leave_out: Iterable[str]) -> dict[str, str]:
    """Run the tests but some; return `passed`, `skipped` or the failure of each by its name."""
    environment = os.environ | {
        "KAFKA_URI": f"kafka://127.0.0.1:{port}",
        "KAFKA_VERSION": _KAFKA_VERSION,
        "KAFKA_ROOT": str(folder),  # must exist; nothing is started from it
        "PYTHONPATH": str(folder),
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="),
            *("-o", "log_level=WARNING", f"--junitxml={report}", "test/integration"),
            *("-k", " and ".join(f"not {name}" for name in leave_out)),
            *("--ignore", "test/integration/test_ssl_integration.py"),  # starts Kafka itself
        ],
        cwd=folder,
        env=environment,
        timeout=_SECONDS_MAX,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    return {
        case.attrib["name"]: _outcome(case) for case in ElementTree.parse(report).iter("testcase")
    }


def _raise_limits(tests: Path) -> int:
    """Give the tests more time; return how many limits were raised."""
    count = 0
    for path in tests.glob("*.py"):
        text, found = _LIMITS.subn(
            lambda limit: f"{limit[1]}{_TIMES * int(limit[2])}", path.read_text()
        )
        path.write_text(text)
        count += found
    assert count >= _LIMITS_MIN, "the tests of this version have other limits"
    return count


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return f"{kind}: {found.attrib.get('message', '')}"
    return "passed" if case.find("skipped") is None else "skipped"


def _pin() -> str:
    """Return the lines of the requirement file that pin kafka-python."""
    text = (ROOT / "requirements" / "dev.txt").read_text()
    found = re.search(r"^kafka-python==\S+ (\\\n\s+--hash=\S+ ?)+", text, re.MULTILINE)
    assert found is not None, "requirements/dev.txt pins kafka-python"
    return found[0]


def _fetched(pin: str, cache: Path) -> Path | None:
    cache.mkdir(parents=True, exist_ok=True)
    wanted = cache / "wanted.txt"
    wanted.write_text(pin.rstrip().removesuffix("\\") + "\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-binary", ":all:", "--require-hashes"),
            *("--dest", str(cache), "--requirement", str(wanted)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return None
    return next(cache.glob("kafka_python-*.tar.gz"))
