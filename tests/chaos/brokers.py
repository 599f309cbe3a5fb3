"""Brokers of a run: `kafkaesque serve` in separate processes, to be killed and paused."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkaesque.testing.process import BrokerProcess as Watched
from tools.repository import ROOT

START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 30.0
_LOOK_SECONDS = 0.02
_LISTENS = re.compile(r"listens on [0-9.]+:(\d+).* broker (\d+)$", re.MULTILINE)


class DidNotStart(AssertionError):
    """The broker ended or printed nothing; the text has the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a broker runs: a test can give it a separate machine."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 0
    prefix: tuple[str, ...] = ()
    """A command that runs another one somewhere, such as `ip netns exec NAME`."""
    advertised: str = ""
    """The advertised address, if it differs from the one it listens on."""
    secret: Path | None = None
    """The secret that brokers of several machines prove to each other."""
    environment: Mapping[str, str] = field(default_factory=dict)
    module: tuple[str, ...] = ("kafkaesque",)
    """The Python module that is the broker, and the arguments before all others."""


class BrokerProcess:
    """One broker; its output goes to files beside its data, for diagnosis."""

    def __init__(self, place: Place, log: Path, join: str = "") -> None:
        self.place = place
        self.port = place.port
        self.number = 0
        """Its id in the cluster, once it serves."""
        self._log = log
        self.join = join
        """The broker that assigns its id when its folder is empty."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where clients find it."""
        return self.place.advertised or f"{self.place.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process, while there is one."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process exists, paused or not."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it prints its address; later starts use the same port."""
        self.launch()
        self.wait_until_it_listens()

    def launch(self) -> None:
        """Start it without waiting for anything."""
        assert not self.is_running, "it is running already"
        place = self.place
        join = ("--join", self.join) if self.join else ()
        told = ("--advertised", place.advertised) if place.advertised else ()
        secret = ("--secret-file", str(place.secret)) if place.secret else ()
        for watcher in Watched.output_watchers:  # a test fails if a broker complains
            watcher(self._log)
        with self._said.open("wb") as said, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *place.prefix,
                    *(sys.executable, "-m", *place.module, "serve"),
                    *("--listen", place.host, "--port", str(self.port)),
                    *("--data", str(place.data), *join, *told, *secret),
                ],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=log,
                env={**os.environ, **place.environment},
            )

    def wait_until_it_listens(self) -> None:
        """Return when it serves; raises DidNotStart if it does not."""
        late = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < late and self.is_running:
            found = _LISTENS.search(self._said.read_text())
            if found is not None:
                self.port, self.number = int(found[1]), int(found[2])
                return
            time.sleep(_LOOK_SECONDS)
        raise DidNotStart(f"{self._said.read_text()}\n{self.last_words()}")

    def kill(self) -> None:
        """Kill it, like a crash."""
        kill_all([self])

    def pause(self) -> None:
        """Pause it, like a machine under too much load."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it; it cannot know that it was paused."""
        self._signal(signal.SIGCONT)

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        self._signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        assert self._process is not None
        return self._process.wait(STOP_SECONDS_MAX)

    def last_words(self) -> str:
        """Return the end of its log."""
        return self._log.read_text()[-4000:] if self._log.exists() else ""

    @property
    def _said(self) -> Path:
        return self._log.with_suffix(".out")

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running:
            os.kill(self.pid, number)


def kill_all(brokers: Sequence[BrokerProcess]) -> None:
    """Kill brokers at the same time."""
    for broker in brokers:
        broker._signal(signal.SIGKILL)
    for broker in brokers:
        broker.wait()
