"""A dialogue in the text protocol, as typed into telnet."""

import re
import socket
from collections.abc import Callable

from kafkaesque.cli.demo_traffic import DemoFailed

_SECONDS_MAX = 10
_ANSWER_BYTES = 65536


def dialogue(port: int, lines: list[str], say: Callable[[str, str], None]) -> list[str]:
    """Type several lines on one connection; `say` gets each line and its answer.

    `{id}` in a line stands for the first subscription id that was returned.
    """
    answers: list[str] = []
    subscription = ""
    with socket.create_connection(("127.0.0.1", port), _SECONDS_MAX) as stream:
        for template in lines:
            line = template.replace("{id}", subscription)
            answer = _typed(stream, line)
            found = re.search(r'"Data":\["([^"]+)"', answer)
            if found is not None and not subscription:
                subscription = found[1]
            say(line, answer)
            answers.append(answer)
    return answers


def _typed(stream: socket.socket, line: str) -> str:
    stream.sendall(f"{line}\r\n".encode())
    answer = b""
    while not answer.endswith(b"\n"):
        data = stream.recv(_ANSWER_BYTES)
        if not data:
            raise DemoFailed(f"the broker hung up after {line!r}")
        answer += data
    return answer.decode().strip()
