"""Many connections at once, and bad text or HTTP."""

import socket
import struct

import pytest

from tests.hostile.peers import Hostile
from tests.server.running import an_api_versions

IDLE = 2_000
STORM = 1_000
LINGER = struct.pack("ii", 1, 0)
"""Makes closing reset the connection, so that no port stays in TIME_WAIT."""


def test_thousands_of_silent_connections_do_not_disturb_the_broker(
    hostile: Hostile,
) -> None:
    silent = [hostile.connect() for _ in range(IDLE)]
    spoken = [hostile.connect() for _ in range(IDLE)]
    for sock in spoken:
        sock.sendall(an_api_versions())
    assert all(sock.recv(4) for sock in spoken)
    for sock in (*silent, *spoken):
        sock.close()


def test_a_storm_of_short_connections_does_not_disturb_the_broker(hostile: Hostile) -> None:
    for number in range(STORM):
        sock = hostile.connect()
        if number % 3:
            sock.sendall(an_api_versions()[: number % 7])
        if number % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        sock.close()


def test_a_client_that_presses_enter_first_is_answered_in_text(hostile: Hostile) -> None:
    assert hostile.says(b"\r\n\r\nNOSUCH\r\n")[0].startswith(b'{"Ok":false')
    assert hostile.says(b"\nLIST\r\n")[0].startswith(b'{"Ok":true')


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfd" * 200_000,
        b"\xff\xfa" + bytes(4 << 20),
        b"PUBS plain " + b"x" * (16 << 20),
        b"PUBS plain " + b'{"Body":' + b"[" * 500_000 + b"\r\n",
        b"\r" * (1 << 20),
        b'CRTP "' + b'""' * 400_000 + b"\r\n",
    ],
    ids=["options", "a negotiation", "no line end", "deep JSON", "returns", "quotes"],
)
def test_endless_or_meaningless_text_is_not_buffered(hostile: Hostile, data: bytes) -> None:
    sock = hostile.connect()
    sock.settimeout(2)
    try:
        sock.sendall(data)
        sock.recv(1_000)
    except OSError:
        pass  # the broker may have disconnected, or be waiting for more


@pytest.mark.parametrize(
    "data",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 9_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
        b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    ],
    ids=["two lengths", "9 kB of headers", "a folded header", "a body", "two hosts"],
)
def test_an_ambiguous_request_is_refused_and_closed(hostile: Hostile, data: bytes) -> None:
    with hostile.connect() as sock:
        sock.sendall(data)
        with sock.makefile("rb") as file:
            answer = file.read()
    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.count(b"HTTP/1.1") == 1
