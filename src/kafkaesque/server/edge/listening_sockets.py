"""Listening sockets: one port, on every address of a name."""

import asyncio
import socket
from collections.abc import Sequence

from kafkaesque.errors import CannotListen
from kafkaesque.server.requests.addresses import shown

_TURNS_TO_ACCEPT = 5
"""Loop iterations until a just accepted connection is registered, so that it can be closed."""

PORT_TRIES_MAX = 20
"""With port 0 all addresses must get the same free port; a port taken on one is dropped."""


def listening_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Return bound sockets that listen on one port; raises CannotListen.

    `localhost` is 127.0.0.1 and ::1, if the machine has both. Port 0 picks a free one.
    """
    for attempt in range(PORT_TRIES_MAX):
        try:
            return _bind_all(_addresses(host, port), port, backlog)
        except OSError as error:
            if port != 0 or attempt == PORT_TRIES_MAX - 1:
                reason = error.strerror or str(error)
                raise CannotListen(f"cannot listen on {shown(host, port)}: {reason}") from error
    raise AssertionError("the last attempt returns or raises")


async def stop_listening(servers: Sequence[asyncio.Server]) -> None:
    """Stop accepting; just accepted connections are registered first, to be closed like the others.

    Python 3.11's own loop leaks an accepted connection if its server is closed before the next
    iterations of the loop.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, asyncio.SelectorEventLoop):
        for server in servers:
            for sock in server.sockets:
                loop.remove_reader(sock.fileno())
    for _ in range(_TURNS_TO_ACCEPT):
        await asyncio.sleep(0)
    for server in servers:
        server.close()


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    if host == "localhost":
        # The resolver is not used: many machines list only one of the two.
        found = [(socket.AF_INET, "127.0.0.1")]
        return [*found, (socket.AF_INET6, "::1")] if _has_ipv6_loopback() else found
    infos = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in infos))


def _has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _bind_all(
    addresses: list[tuple[socket.AddressFamily, str]], port: int, backlog: int
) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for family, address in addresses:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((address, port))
            port = sock.getsockname()[1]
        for sock in sockets:
            sock.listen(backlog)
            sock.setblocking(False)  # noqa: FBT003
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets
