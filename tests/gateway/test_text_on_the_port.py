"""The text protocol on the broker's one port, beside Kafka's and under the same limits."""

from pathlib import Path

import pytest

from kafkaesque.server_config import LimitsConfig
from tests.gateway.test_text_page import answers, typed
from tests.server.running import LOOPS, run_on, running

IDLE_MS = 600_000


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.requirement("TXT-4")
def test_the_session_of_the_page_can_be_typed_at_the_brokers_port(
    tmp_path: Path, loop: str
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send("".join(f"{line}\r\n" for line in typed()).encode())
            said = (await peer.rest()).decode().splitlines()
            assert said == answers()
            await broker.serves()  # Kafka's protocol too

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
def test_telnet_bytes_select_the_same_protocol(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer = await broker.connect()
            peer.send(b"\xff\xfd\x03LIST\r\n")
            assert await peer.line() == b'\xff\xfc\x03{"Ok":true,"Data":[]}\r\n'

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.complains(
    "connection_closed reason=idle peer=127.0.0.1: a text connection",
)
def test_only_a_client_that_records_are_pushed_to_may_be_silent(tmp_path: Path, loop: str) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(idle_ms_max=IDLE_MS)) as broker:
            listener, sleeper = await broker.connect(), await broker.connect()
            listener.send(b"CRTP t 1\r\nPUSH t g\r\n")
            sleeper.send(b"LIST\r\n")
            await listener.line()
            await listener.line()
            await sleeper.line()
            for _ in range(3):
                await broker.pass_time(IDLE_MS)
            assert await sleeper.rest() == b""
            writer = await broker.connect()
            writer.send(b'PUBS t {"Body":"news"}\r\n')
            assert await writer.line() == b"Done\r\n"
            assert b'"news"' in await listener.line()

    run_on(loop, go())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_stopping_broker_answers_typed_commands_and_disconnects(
    tmp_path: Path, loop: str
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            peer, listener = await broker.connect(), await broker.connect()
            peer.send(b"CRTP t 1\r\n")
            assert await peer.line() == b"Done\r\n"
            listener.send(b"PUSH t g\r\n")
            await listener.line()
            peer.send(b'PUBS t {"Body":"last"}\r\n')
            assert await peer.line() == b"Done\r\n"
            assert b'"last"' in await listener.line()
            await broker.node.stop()
            assert await peer.rest() == b""
            assert await listener.rest() == b""
            await broker.node.start()  # stopped at the end of the test

    run_on(loop, go())
