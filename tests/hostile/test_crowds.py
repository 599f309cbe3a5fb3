"""Many connections at once, and those that speak text or HTTP badly."""

import socket
import struct

import pytest

from tests.hostile.peers import Hostile
from tests.server.running import an_api_versions

IDLE = 2_000
STORM = 1_000
LINGER = struct.pack("ii", 1, 0)
"""Closing then resets the connection, and leaves no port behind that waits."""


def test_two_thousand_who_say_nothing_and_as_many_who_said_something_disturb_nobody(
    hostile: Hostile,
) -> None:
    silent = [hostile.connect() for _ in range(IDLE)]
    spoken = [hostile.connect() for _ in range(IDLE)]
    for sock in spoken:
        sock.sendall(an_api_versions())
    assert all(sock.recv(4) for sock in spoken)
    for sock in (*silent, *spoken):
        sock.close()


def test_a_storm_of_those_who_come_and_go_disturbs_nobody(hostile: Hostile) -> None:
    for number in range(STORM):
        sock = hostile.connect()
        if number % 3:
            sock.sendall(an_api_versions()[: number % 7])
        if number % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        sock.close()


def test_one_who_presses_enter_first_is_answered_in_text(hostile: Hostile) -> None:
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
def test_text_without_end_or_sense_is_not_kept(hostile: Hostile, data: bytes) -> None:
    sock = hostile.connect()
    sock.settimeout(2)
    try:
        sock.sendall(data)
        sock.recv(1_000)
    except OSError:
        pass  # it may have been hung up on, or be waited for


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
def test_a_request_that_could_mean_two_things_is_refused_and_closed(
    hostile: Hostile, data: bytes
) -> None:
    with hostile.connect() as sock:
        sock.sendall(data)
        with sock.makefile("rb") as file:
            answer = file.read()
    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.count(b"HTTP/1.1") == 1
