"""Sockets to listen on: one port, on every address that a name stands for."""

import asyncio
import socket
from collections.abc import Sequence

from kafkaesque.errors import BadConfiguration, CannotListen
from kafkaesque.server.doorkeeper import is_loopback

_TURNS_TO_ACCEPT = 5
"""Turns of the loop in which a connection that was just accepted becomes known, to be closed."""

PORT_TRIES_MAX = 20
"""With port 0 all addresses must get the same free port; one that is taken elsewhere is dropped."""


def listening_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Return bound sockets that listen on one port; raises CannotListen.

    `localhost` is 127.0.0.1 and ::1, where the machine has both. Port 0 takes a free one.
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
    """Accept no more; those just accepted become known first, to be closed like the others.

    Python 3.11's own loop leaks a connection that it has accepted when its server is closed
    before the next turns of the loop.
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


def shown(host: str, port: int) -> str:
    """Return an address as people write it: IPv6 goes in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_local(host: str) -> bool:
    """Return whether only this machine can reach the address; other names may be anybody's."""
    return host == "localhost" or (host != "" and is_loopback(host))


def reachable_name(host: str) -> str:
    """Return a name by which others can reach what listens on an address."""
    return socket.gethostname() if host in ("", "0.0.0.0", "::") else host


def parse_address(text: str) -> tuple[str, int]:
    """Return the host, without brackets, and the port of `host:port`; raises BadConfiguration."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadConfiguration(f"an IPv6 address goes in brackets, not {text!r}")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise BadConfiguration(f"an address is host:port, not {text!r}")
    return host, int(port)


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    if host == "localhost":
        # Not asked of the resolver: many machines list only one of the two.
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
