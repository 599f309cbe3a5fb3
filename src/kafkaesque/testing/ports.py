"""Free ports that stay reserved until released."""

import os
import socket
import sys
import weakref

HOST = "127.0.0.1"


class HeldPort:
    """A free port, held until it is released or this object is garbage-collected.

    Linux gives a bound port neither to a process that asks for any port nor to an outgoing
    connection. A server that names it, with SO_REUSEADDR, may listen there; until then connections
    are refused. On other systems two sockets cannot share it, so it is only found, not held.
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
        """Stop holding the port."""
        self._release()
