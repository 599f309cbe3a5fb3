"""The clients of a run: each in a separate process, with a separate history."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.history import Op, load
from tests.chaos.job import Job
from tools.repository import ROOT

STOP_SECONDS_MAX = 90.0
PARTITIONS = 4

USUAL = (
    "confluent-producer",
    "aiokafka-producer",
    "confluent-consumer",
    "aiokafka-consumer",
    "confluent-member",
    "confluent-member",
)
TRANSACTOR = "transactor"
FILLER = "filler"
SHARER = "sharer"
AT_THE_END = ("confluent-places", "confluent-final", "kafka-python-final")


class ClientFailed(AssertionError):
    """A client process failed or did not end; the text has its output."""


class Workload:
    """Clients that run until stopped, and clients that read everything in the end."""

    def __init__(self, folder: Path, bootstrap: str, prefix: tuple[str, ...] = ()) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0
        self._roles: set[str] = set()

    def start(self, roles: Sequence[str] = USUAL) -> None:
        """Start one process for each role."""
        self._roles.update(roles)
        for role in roles:
            self._started += 1
            name = f"{role}-{self._started}"
            job = Job(
                role=role,
                name=name,
                bootstrap=self._bootstrap,
                history=str(self._folder / f"{name}.jsonl"),
                partitions=PARTITIONS,
            )
            with (self._folder / f"{name}.log").open("wb") as log:
                self._running[name] = subprocess.Popen(
                    [*self._prefix, sys.executable, "-m", "tests.chaos.client", job.to_json()],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def stop(self) -> None:
        """Stop all clients after their current operations; raises ClientFailed."""
        for process in self._running.values():
            process.terminate()
        self.wait()

    def wait(self) -> None:
        """Wait until all have ended; raises ClientFailed."""
        for name, process in self._running.items():
            try:
                code = process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise ClientFailed(f"{name} does not end:\n{self._said(name)}") from None
            if code != 0:
                raise ClientFailed(f"{name} ended with {code}:\n{self._said(name)}")
        self._running.clear()

    def look(self) -> None:
        """Read everything once more, with two clients."""
        self.start(AT_THE_END)
        if TRANSACTOR in self._roles:
            self.start(("transactions-final",))
        if SHARER in self._roles:
            self.start(("queue-final",))
        self.wait()

    def kill(self) -> None:
        """Kill the remaining clients."""
        for process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()

    def history(self) -> list[Op]:
        """Return what all of them did and saw so far."""
        return load(sorted(self._folder.glob("*.jsonl")))

    def _said(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()[-3000:]
