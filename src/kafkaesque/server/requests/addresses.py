"""Addresses as text: how they are read and shown, and whose they are."""

import socket

from kafkaesque.errors import BadConfiguration


def is_loopback(address: str) -> bool:
    """Return whether an IP address is this machine's own; a local socket has none."""
    return address.startswith("127.") or address in ("::1", "")


def shown(host: str, port: int) -> str:
    """Return an address in display form: IPv6 goes in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_local(host: str) -> bool:
    """Return whether only this machine can reach the address; other names may be anyone's."""
    return host == "localhost" or (host != "" and is_loopback(host))


def reachable_name(host: str) -> str:
    """Return a name by which others can reach a listening address."""
    return socket.gethostname() if host in ("", "0.0.0.0", "::") else host


def parse_address(text: str) -> tuple[str, int]:
    """Return the host, without brackets, and the port of `host:port`; raises BadConfiguration."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadConfiguration(f"an IPv6 address must be in brackets, not {text!r}")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise BadConfiguration(f"an address must be host:port, not {text!r}")
    return host, int(port)
