"""Clients that send requests and do not read: their cost is counted and bounded."""

import asyncio
import socket
from pathlib import Path

from kafkaesque.server.requests.unsent_bytes import LITTLE_BYTES, Untaken
from kafkaesque.server_config import LimitsConfig
from tests.server.running import Peer, Running, a_fetch, a_metadata, a_produce, running

TOPIC = "orders"
VALUE_BYTES = 200_000
BATCHES = 15
RECEIVE_BYTES = 4096
"""What a deaf client's socket takes; the rest stays with the broker."""


async def filled(broker: Running) -> Peer:
    """Return a client whose topic holds 3 MB."""
    client = await broker.connect()
    client.send(a_metadata(TOPIC))
    await client.answer()
    for number in range(BATCHES):
        client.send(a_produce(TOPIC, bytes(VALUE_BYTES), number))
        assert await client.correlation() == number
    return client


def a_deaf_socket(port: int) -> socket.socket:
    """Return a socket that requests everything and reads nothing."""
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    deaf.connect(("127.0.0.1", port))
    for number in range(10):  # the broker's socket never takes all of these
        deaf.sendall(a_fetch(TOPIC, number))
    return deaf


def test_unsent_bytes_are_counted_until_the_client_reads_or_disconnects(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with running(tmp_path) as broker:
            await filled(broker)
            untaken = broker.node.edge.untaken
            assert untaken.held_bytes == 0
            with a_deaf_socket(broker.node.port):
                await broker.until(lambda: untaken.held_bytes > 0)
            await broker.until(lambda: untaken.held_bytes == 0)
            slow = a_deaf_socket(broker.node.port)
            await broker.until(lambda: untaken.held_bytes > 0)
            slow.setblocking(False)
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(10):
                while untaken.held_bytes:
                    await loop.sock_recv(slow, 1 << 20)
            slow.close()

    asyncio.run(go())


def test_when_much_is_unsent_others_get_little_at_a_time_but_never_nothing(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with running(tmp_path, LimitsConfig(untaken_bytes_max=1_000_000)) as broker:
            client = await filled(broker)
            client.send(a_fetch(TOPIC))
            assert len(await client.answer()) > BATCHES * VALUE_BYTES
            untaken = broker.node.edge.untaken
            with a_deaf_socket(broker.node.port):
                await broker.until(lambda: untaken.held_bytes > untaken.bytes_max)
                client.send(a_fetch(TOPIC))
                assert VALUE_BYTES < len(await client.answer()) < 2 * VALUE_BYTES, "one batch"
            await broker.until(lambda: untaken.held_bytes == 0)
            client.send(a_fetch(TOPIC))
            assert len(await client.answer()) > BATCHES * VALUE_BYTES

    asyncio.run(go())


def test_over_the_limit_little_is_served_and_never_more_than_requested() -> None:
    untaken = Untaken(100)
    assert untaken.fitting(5 << 20) == 5 << 20
    untaken.held_bytes = 101
    assert untaken.fitting(5 << 20) == LITTLE_BYTES
    assert untaken.fitting(10) == 10
