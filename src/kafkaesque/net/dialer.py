"""Connects to another broker."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from kafkaesque.net.link import Link

ADDRESSES_MAX = 8
"""Addresses tried per host; more would only take time."""


async def dial(make: Callable[[], Link], host: str, port: int, dial_ms_max: int) -> Link:
    """Return an open link.

    Raises ConnectionRefusedError if every address of the host refuses the connection; another
    OSError if the host cannot be reached; LinkError if the handshake fails.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(dial_ms_max / 1000):
        link = await _first(loop, make, host, port)
    try:
        await link.ready
    except BaseException:
        link.cut()
        raise
    return link


async def knock(host: str, port: int, dial_ms_max: int) -> None:
    """Connect and disconnect at once; raises what `dial` raises if nothing listens."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(dial_ms_max / 1000):
        transport = await _first_transport(loop, asyncio.Protocol, host, port)
    transport.abort()


async def _first(
    loop: asyncio.AbstractEventLoop, make: Callable[[], Link], host: str, port: int
) -> Link:
    made: list[Link] = []

    def link() -> Link:
        made.append(make())
        return made[-1]

    # Not the transport's protocol: that is already None if the peer hung up at once.
    await _first_transport(loop, link, host, port)
    return made[-1]


async def _first_transport(
    loop: asyncio.AbstractEventLoop,
    make: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
) -> asyncio.Transport:
    """Connect to the first address of a host that accepts.

    One by one, because `create_connection` hides in one error whether all of them refused.
    """
    errors: list[OSError] = []
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for _, _, _, _, address in found[:ADDRESSES_MAX]:
        try:
            transport, _ = await loop.create_connection(make, str(address[0]), port)
        except OSError as error:
            errors.append(error)
        else:
            return transport
    with suppress(StopIteration):
        raise next(error for error in errors if not isinstance(error, ConnectionRefusedError))
    raise errors[0]
