"""A protocol without limits of its own, and the wrapper that enforces them.

The protocol may define `overdue` if it keeps its own deadlines, `is_listening` while its client
need not send anything, and `finish` to end at its own pace when the broker stops.
"""

import asyncio
from typing import Protocol, cast, runtime_checkable

from kafkaesque.server.edge.counters import Refusal
from kafkaesque.server.edge.edge import Edge


@runtime_checkable
class HasDeadlines(Protocol):
    """A protocol with its own deadlines; no others apply to it."""

    def overdue(self, now_ms: int) -> Refusal | None:
        """Return why it should be closed by now, or None."""
        ...


@runtime_checkable
class Finishes(Protocol):
    """A protocol that ends at its own pace when the broker stops."""

    def finish(self) -> None:
        """Take no more requests, and close when the last one is answered."""
        ...


@runtime_checkable
class Listens(Protocol):
    """A protocol whose client may wait for pushed data."""

    @property
    def is_listening(self) -> bool:
        """Whether the client waits for the broker, so that its silence means nothing."""
        ...


class GuestProtocol(asyncio.Protocol):
    """Wraps the protocol of one connection: counts bytes and records the last activity."""

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
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self._transport.set_write_buffer_limits(high=self._edge.limits.write_buffer_bytes_max)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass it on, unless the connection is closing."""
        self._seen_ms = self._edge.doorkeeper.now_ms()
        self._edge.counters.received_bytes += len(data)
        if not self._transport.is_closing():
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on, and deregister."""
        self._edge.doorkeeper.leave(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on: the protocol decides whether to keep reading."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on; it counts as activity."""
        self._seen_ms = self._edge.doorkeeper.now_ms()
        self._inner.resume_writing()

    def overdue(self, now_ms: int) -> Refusal | None:
        """Ask the protocol, or check when it was last active."""
        if self._inner_overdue is not None:
            return self._inner_overdue(now_ms)
        if self._listener is not None and self._listener.is_listening:
            self._seen_ms = now_ms
        is_idle = now_ms - self._seen_ms > self._edge.limits.idle_ms_max
        return Refusal.IDLE if is_idle else None

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def finish(self) -> None:
        """Let the protocol end at its own pace, or close after pending writes."""
        if isinstance(self._inner, Finishes):
            self._inner.finish()
        else:
            self._transport.close()


class LinkGuest(asyncio.BufferedProtocol):
    """Wraps a link to another broker, which has its own limits and deadlines."""

    __slots__ = ("_edge", "_inner", "_transport")

    def __init__(self, inner: asyncio.BufferedProtocol, edge: Edge) -> None:
        self._inner = inner
        self._edge = edge
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass it on."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self._inner.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Pass it on."""
        return cast(memoryview, self._inner.get_buffer(sizehint))

    def buffer_updated(self, nbytes: int) -> None:
        """Pass it on."""
        self._edge.counters.received_bytes += nbytes
        self._inner.buffer_updated(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on, and deregister."""
        self._edge.doorkeeper.leave(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()

    def overdue(self, now_ms: int) -> Refusal | None:
        """Never overdue here: the link has its own deadlines."""
        return None

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def finish(self) -> None:
        """Close after pending writes."""
        self._transport.close()
