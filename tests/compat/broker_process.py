"""A real broker in a process of its own, on a free port, that can be killed and started again."""

import re
import signal
import subprocess
import sys
from pathlib import Path

_LISTENS = re.compile(r"listens on 127\.0\.0\.1:(\d+)")
_STOP_SECONDS_MAX = 20


class BrokerProcess:
    """`kafkaesque serve` on one data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it says where it listens; again on the same port."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kafkaesque", "serve"),
                *("--port", str(self.port), "--data", str(self._data)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = _LISTENS.search(line)
        assert found is not None, f"the broker said: {line}"
        self.port = int(found[1])

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        code = process.wait(_STOP_SECONDS_MAX)
        assert process.stdout is not None
        process.stdout.close()
        return code
