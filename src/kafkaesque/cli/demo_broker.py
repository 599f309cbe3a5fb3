"""The broker of the demonstration: a process of its own that can be killed and started again."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kafkaesque.cli.demo_traffic import DemoFailed

_LISTENS = re.compile(r"listens on \S*?:(\d+)")
_STOP_SECONDS_MAX = 20
_TEXT_SECONDS_MAX = 10


class DemoBroker:
    """`kafkaesque serve` on one folder; started again it takes the same port."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None, "it runs"
        return self._process.pid

    def start(self) -> float:
        """Start it and wait until it listens; return the milliseconds that this took."""
        begun = time.perf_counter()
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
        if found is None:
            raise DemoFailed(f"the broker did not start: {line.strip() or 'it said nothing'}")
        self.port = int(found[1])
        return (time.perf_counter() - begun) * 1000

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._end(subprocess.Popen.kill)

    def stop(self) -> None:
        """Let it stop cleanly."""
        self._end(subprocess.Popen.terminate)

    def type(self, line: str) -> str:
        """Type a line at its port, as one does with telnet, and return the answer."""
        with socket.create_connection(("127.0.0.1", self.port), _TEXT_SECONDS_MAX) as stream:
            return _typed(stream, line)

    def dialogue(self, lines: list[str], say: Callable[[str, str], None]) -> list[str]:
        """Type several lines on one connection; `say` is told each with its answer.

        `{id}` in a line stands for the first subscription that was given.
        """
        answers: list[str] = []
        subscription = ""
        with socket.create_connection(("127.0.0.1", self.port), _TEXT_SECONDS_MAX) as stream:
            for template in lines:
                line = template.replace("{id}", subscription)
                answer = _typed(stream, line)
                found = re.search(r'"Data":\["([^"]+)"', answer)
                if found is not None and not subscription:
                    subscription = found[1]
                say(line, answer)
                answers.append(answer)
        return answers

    def _end(self, how: "Callable[[subprocess.Popen[str]], None]") -> None:
        process, self._process = self._process, None
        if process is not None:
            how(process)
            process.wait(_STOP_SECONDS_MAX)
            assert process.stdout is not None
            process.stdout.close()


def _typed(stream: socket.socket, line: str) -> str:
    stream.sendall(f"{line}\r\n".encode())
    answer = b""
    while not answer.endswith(b"\n"):
        data = stream.recv(65536)
        if not data:
            raise DemoFailed(f"the broker hung up after {line!r}")
        answer += data
    return answer.decode().strip()
