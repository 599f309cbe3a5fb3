"""Writes parts of frames to a socket."""

import asyncio
import socket
import sys
from collections.abc import Sequence

from kafkaesque.types import Buffer

SMALL_PART_BYTES = 4 << 10
"""Shorter parts are joined; longer ones are passed on without copying."""

_WRITELINES_PAUSES = not (
    (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
)
"""In some versions asyncio's `writelines` never asks to pause, at any size (CVE-2024-12254)."""


def joined(parts: Sequence[Buffer]) -> list[Buffer]:
    """Return the parts with adjacent small ones joined; large ones are not copied."""
    out: list[Buffer] = []
    small: list[Buffer] = []
    for part in parts:
        if len(part) < SMALL_PART_BYTES:
            small.append(part)
        else:
            if small:
                out.append(b"".join(small))
                small = []
            out.append(part)
    if small:
        out.append(b"".join(small))
    return out


def write_parts(transport: asyncio.Transport, parts: Sequence[Buffer]) -> None:
    """Write parts, so that the protocol is asked to pause when too much data waits."""
    if _WRITELINES_PAUSES or not isinstance(transport, asyncio.Transport):  # uvloop's are not
        transport.writelines(parts)
        return
    for part in parts:
        transport.write(part)


def no_delay(transport: asyncio.BaseTransport) -> None:
    """Disable Nagle's algorithm: an answer must not wait for another one."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
