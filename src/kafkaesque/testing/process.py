"""`kafkaesque serve` as a child process that can be killed, paused and started again."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from kafkaesque.errors import KafkaesqueError
from kafkaesque.testing.ports import HOST as HOST
from kafkaesque.testing.ports import HeldPort
from kafkaesque.types import NodeId

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
_LOOK_EVERY_S = 0.01
_LISTENS = re.compile(r"kafkaesque listens on .*?:(\d+).*, broker (\d+)$", re.MULTILINE)
_TAIL_CHARS = 2_000


def free_port() -> int:
    """Return a port of this machine that is unused now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


class BrokerProcess:
    """One broker on one data folder; it keeps its port over restarts, also while stopped.

    Its output goes to a file beside the folder, so that no pipe must be drained. With `is_apart` it
    has its own session: ctrl-C in a terminal, or the terminal's end, reaches only the parent, which
    must stop it then.
    """

    output_watchers: ClassVar[list[Callable[[Path], None]]] = []
    """Called with the output file before each start and after each end of any broker."""

    def __init__(
        self,
        data: Path,
        flags: Sequence[str] = (),
        *,
        port: int = 0,
        environment: Mapping[str, str] | None = None,
        is_apart: bool = False,
    ) -> None:
        self.data = data
        self._held = HeldPort() if port == 0 else None
        self.port = self._held.port if self._held is not None else port
        self.node: NodeId = 0
        """Its number in the cluster, once started."""
        self.output = data.with_name(f"{data.name}.out")
        self._flags = list(flags)
        self._is_apart = is_apart
        self.settings = dict(environment or {})
        """Environment variables for its next start."""
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` of clients."""
        return f"{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether its process exists, even if paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "it runs"
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it serves; raises KafkaesqueError with its output."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it without waiting."""
        assert not self.is_running, "it runs already"
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self._call_watchers()
        with self.output.open("ab") as output:
            self._said = output.tell()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "kafkaesque", "serve", "--data", str(self.data)),
                    *("--listen", HOST, "--port", str(self.port)),
                    *self._flags,
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.settings},
                start_new_session=self._is_apart,
            )

    def wait(self) -> None:
        """Wait until it serves; raises KafkaesqueError if it does not."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while (found := _LISTENS.search(self.said())) is None:
            if not self.is_running:
                raise KafkaesqueError(f"the broker did not start: {self.said()[-_TAIL_CHARS:]}")
            if time.monotonic() > deadline:
                raise KafkaesqueError(f"the broker does not serve: {self.said()[-_TAIL_CHARS:]}")
            time.sleep(_LOOK_EVERY_S)
        self.port, self.node = int(found[1]), int(found[2])

    def said(self) -> str:
        """Return its output since its last start."""
        with self.output.open("rb") as output:
            output.seek(self._said)
            return output.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill it at once, like a crash."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop it cleanly; return its exit code."""
        return self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Suspend its process, like a badly overloaded machine."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume its process."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running:
            assert self._process is not None
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)  # a paused process must receive it
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS_MAX)
            raise KafkaesqueError(
                f"broker {self.node} did not stop within {STOP_SECONDS_MAX} s"
            ) from None
        finally:
            self._call_watchers()

    def _call_watchers(self) -> None:
        for watcher in self.output_watchers:
            watcher(self.output)
