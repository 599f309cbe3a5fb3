"""A broker in a separate process whose output and memory are watched."""

import re
import subprocess
import sys
from pathlib import Path
from types import TracebackType

_LISTENS = re.compile(r"listens on 127\.0\.0\.1:(\d+)")
_TROUBLE = re.compile(
    r"Traceback|request_failed|Error in|never retrieved|Task was destroyed|\bERROR\b"
)
_STOP_SECONDS_MAX = 60


class Victim:
    """`kafkaesque serve`; it must never crash, and never log an error of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._said = folder / "stderr.txt"
        self.data = folder / "data"
        self._options = options
        self._seen = 0

    def __enter__(self) -> "Victim":
        command = [sys.executable, "-m", "kafkaesque", "serve", *self._options]
        self._stderr = self._said.open("w")
        self._process = subprocess.Popen(
            [*command, "--port", "0", "--data", str(self.data)],
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        assert self._process.stdout is not None
        found = _LISTENS.search(self._process.stdout.readline())
        assert found is not None, self.said()
        self.port = int(found[1])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        code = self._process.wait(_STOP_SECONDS_MAX)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._stderr.close()
        if error is None:
            assert code == 0, f"it ended with {code}: {self.said()[-3_000:]}"

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def said(self) -> str:
        """Return its stderr so far."""
        return self._said.read_text(errors="replace")

    def trouble(self) -> str | None:
        """Return new log lines that a client must not be able to cause; None if there are none."""
        said = self.said()
        new, self._seen = said[self._seen :], len(said)
        found = _TROUBLE.search(new)
        return None if found is None else new[max(0, found.start() - 200) : found.start() + 4_000]

    def rss_bytes(self) -> int:
        """Return its resident memory."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024
