"""The text protocol of one broker: creates its connections, and closes them all."""

import asyncio

from kafkaesque.gateway.text_connection import TextConnection
from kafkaesque.gateway.text_desk import TextDesk

_STOP_SECONDS_MAX = 1.0


class TextGateway:
    """`connection` is the protocol factory; `stop` closes all connections."""

    def __init__(self, desk: TextDesk) -> None:
        self._desk = desk
        self._open: set[TextConnection] = set()

    def connection(self) -> TextConnection:
        """Return the protocol for a new connection."""
        return TextConnection(self._desk, self._open)

    async def stop(self) -> None:
        """Close every connection, and wait briefly until positions are committed."""
        for connection in list(self._open):
            connection.abort()
        if self._open:
            closed = [connection.closed for connection in self._open]
            await asyncio.wait(closed, timeout=_STOP_SECONDS_MAX)
