"""The session on the text protocol's page is typed, and every answer is the one shown."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.gateway.text_clients import text_broker

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "text-protocol.md"
TELNET = shutil.which("telnet")
PROMPT = "> "


def session() -> list[str]:
    """Return the lines of all examples on the page."""
    blocks = re.findall(r"^```telnet\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def typed() -> list[str]:
    return [line.removeprefix(PROMPT) for line in session() if line.startswith(PROMPT)]


def answers() -> list[str]:
    return [line for line in session() if not line.startswith(PROMPT)]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_every_answer_on_the_page_is_correct(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def go() -> list[str]:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            return [await client.ask(line) for line in typed()]

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(go()) == answers()


def test_every_command_is_on_the_page() -> None:
    words = {line.split()[0].upper() for line in typed()}
    assert words >= {"CRTP", "PUBS", "SUBS", "CONS", "PUSH", "STOP", "LIST", "DISC"}


@pytest.mark.requirement("TXT-4")
@pytest.mark.skipif(TELNET is None, reason="telnet is not installed")
def test_the_session_can_be_typed_into_telnet(tmp_path: Path) -> None:
    def type_all(port: int) -> str:
        assert TELNET is not None
        with subprocess.Popen(
            [TELNET, "127.0.0.1", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n".join([*typed(), ""]))
            process.stdin.flush()  # not closed: telnet would leave without the answers
            return process.stdout.read()  # until the broker disconnects, as DISC asks it to

    async def go() -> str:
        async with text_broker(tmp_path) as broker:
            return await asyncio.to_thread(type_all, broker.port)

    lines = asyncio.run(go()).splitlines()
    assert [line for line in lines if line in answers()] == answers()
