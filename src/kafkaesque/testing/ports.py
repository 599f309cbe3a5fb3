"""Ports of this machine that nobody else is given meanwhile."""

import os
import socket
import sys
import weakref

HOST = "127.0.0.1"


class HeldPort:
    """A free port, held until it is released or nobody refers to this any more.

    Linux gives a port that a socket is bound to neither to a process that asks for any port nor to
    a connection that goes out. A server that names it, with SO_REUSEADDR, may listen there;
    until then connections are refused. Elsewhere two sockets cannot share it, and it is only found.
    """

    def __init__(self) -> None:
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((HOST, 0))
            self.port: int = holder.getsockname()[1]
            self._release = weakref.finalize(self, os.close, holder.detach())
        if sys.platform != "linux":
            self.release()

    def release(self) -> None:
        """Let anybody have it."""
        self._release()
