"""A protocol that knows nothing of limits, and what watches over it.

It may have `overdue`, if it knows best when it has stayed too long, `is_listening`, while its
client need not say anything, and `finish`, to end in its own time when the broker stops.
"""

import asyncio
from typing import Protocol, cast, runtime_checkable

from kafkaesque.server.counters import Refusal
from kafkaesque.server.edge import Edge


@runtime_checkable
class HasDeadlines(Protocol):
    """A protocol with time limits of its own; no others hold for it."""

    def overdue(self, now_ms: int) -> Refusal | None:
        """Return why it should be closed by now, if so."""
        ...


@runtime_checkable
class Finishes(Protocol):
    """A protocol that ends in its own time when the broker stops."""

    def finish(self) -> None:
        """Take no more requests, and close when the last one is answered."""
        ...


@runtime_checkable
class Listens(Protocol):
    """A protocol whose client may have asked to be told what comes."""

    @property
    def is_listening(self) -> bool:
        """Whether the client waits for us, so that its silence means nothing."""
        ...


class GuestProtocol(asyncio.Protocol):
    """Stands before the protocol of one connection: counts bytes, knows when it was last heard."""

    __slots__ = ("_edge", "_inner", "_inner_overdue", "_listener", "_seen_ms", "_transport")

    def __init__(self, inner: asyncio.Protocol, edge: Edge) -> None:
        self._inner = inner
        self._inner_overdue = inner.overdue if isinstance(inner, HasDeadlines) else None
        self._listener = inner if isinstance(inner, Listens) else None
        self._edge = edge
        self._seen_ms = edge.doorkeeper.now_ms()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass it on."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass
        self._transport.set_write_buffer_limits(high=self._edge.limits.write_buffer_bytes_max)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass it on, unless it is closed already."""
        self._seen_ms = self._edge.doorkeeper.now_ms()
        self._edge.counters.received_bytes += len(data)
        if not self._transport.is_closing():
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on, and leave."""
        self._edge.doorkeeper.leave(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on: whether it is still read from is for the protocol to say."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on; it is a sign of life."""
        self._seen_ms = self._edge.doorkeeper.now_ms()
        self._inner.resume_writing()

    def overdue(self, now_ms: int) -> Refusal | None:
        """Ask the protocol itself, or find that nothing was heard of it."""
        if self._inner_overdue is not None:
            return self._inner_overdue(now_ms)
        if self._listener is not None and self._listener.is_listening:
            self._seen_ms = now_ms
        is_idle = now_ms - self._seen_ms > self._edge.limits.idle_ms_max
        return Refusal.IDLE if is_idle else None

    def abort(self) -> None:
        """Hang up."""
        self._transport.abort()

    def finish(self) -> None:
        """Let it end in its own time, or hang up after what was written."""
        if isinstance(self._inner, Finishes):
            self._inner.finish()
        else:
            self._transport.close()


class LinkGuest(asyncio.BufferedProtocol):
    """Stands before a link to another broker, which keeps limits and deadlines of its own."""

    __slots__ = ("_edge", "_inner", "_transport")

    def __init__(self, inner: asyncio.BufferedProtocol, edge: Edge) -> None:
        self._inner = inner
        self._edge = edge
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass it on."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass
        self._inner.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Pass it on."""
        return cast(memoryview, self._inner.get_buffer(sizehint))

    def buffer_updated(self, nbytes: int) -> None:
        """Pass it on."""
        self._edge.counters.received_bytes += nbytes
        self._inner.buffer_updated(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on, and leave."""
        self._edge.doorkeeper.leave(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()

    def overdue(self, now_ms: int) -> Refusal | None:
        """Leave it to the link how long it may be silent."""
        return None

    def abort(self) -> None:
        """Hang up."""
        self._transport.abort()

    def finish(self) -> None:
        """Hang up after what was written."""
        self._transport.close()
