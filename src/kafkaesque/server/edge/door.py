"""One port for every protocol: the first bytes identify it.

    0x00                     Kafka: the length of a first request is far below 16 MiB
    0x01                     another broker of the cluster: a link
    GET, HEAD, POST ...      HTTP, by the first word and its space
    other letters            text
    CR, LF                   text: a user who presses Enter to test the connection
    0xFF 0xF0 to 0xFE        text: the start of telnet negotiation

Anything else is closed. The door reads the first bytes, creates the protocol that they identify,
installs it on the transport in its own place and passes it the bytes.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from kafkaesque.net.frame_writer import no_delay
from kafkaesque.net.handshake import FIRST_BYTE
from kafkaesque.server.edge.connection import Connection
from kafkaesque.server.edge.counters import Kind, Refusal
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.edge.limited_protocol import GuestProtocol, LinkGuest

HTTP_WORDS = tuple(
    f"{word} ".encode()
    for word in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT")
)
LINK_BYTE = FIRST_BYTE[0]
TELNET_COMMAND = 0xFF
TELNET_COMMANDS = range(0xF0, 0xFF)
"""The byte after it; a length of -1 has another 0xFF there."""

LINE_ENDS = b"\r\n"

_PEEK_BYTES = 64 << 10

Factory = Callable[[], asyncio.Protocol]
LinkFactory = Callable[[], asyncio.BufferedProtocol]
"""Creates the protocol of one connection."""


def kind_of(first: bytes) -> Kind | None:
    """Return the protocol of these first bytes; NEW if more are needed, None if unknown."""
    lead = first[0]
    if lead == 0:
        return Kind.KAFKA
    if lead == LINK_BYTE:
        return Kind.LINK
    if lead == TELNET_COMMAND:
        if len(first) == 1:
            return Kind.NEW
        return Kind.TEXT if first[1] in TELNET_COMMANDS else None
    if lead in LINE_ENDS:
        return Kind.TEXT
    if not chr(lead).isascii() or not chr(lead).isalpha():
        return None
    if first.startswith(HTTP_WORDS):
        return Kind.HTTP
    if any(word.startswith(first) for word in HTTP_WORDS):
        return Kind.NEW
    return Kind.TEXT


class Door(asyncio.BufferedProtocol):
    """A connection whose protocol is not known yet."""

    __slots__ = (
        "_address",
        "_edge",
        "_first",
        "_http",
        "_is_waiting",
        "_link",
        "_since_ms",
        "_text",
        "_transport",
    )

    def __init__(
        self, edge: Edge, *, http: Factory, text: Factory, link: LinkFactory | None = None
    ) -> None:
        """Without `link`, other brokers are rejected."""
        self._edge = edge
        self._link = link
        self._http = http
        self._text = text
        self._first = b""
        self._is_waiting = False
        self._since_ms = edge.doorkeeper.now_ms()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit it, unless there are too many."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        if self._edge.doorkeeper.enter(self, address):
            no_delay(transport)
        else:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the first bytes; no protocol needs many of them."""
        return self._edge.slab[:_PEEK_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """Decide once there are enough bytes."""
        if self._transport.is_closing():
            return
        self._first += self._edge.slab[:nbytes]
        kind = kind_of(self._first)
        if kind in (Kind.KAFKA, Kind.TEXT) and not self._edge.is_open:
            self._is_waiting = True
            self._transport.pause_reading()
            self._edge.when_open(self._go_on)
        else:
            self._let_in(kind)

    def _go_on(self) -> None:
        """Admit a client that connected before the broker was ready, if it still waits."""
        self._is_waiting = False
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._let_in(kind_of(self._first))

    def _let_in(self, kind: Kind | None) -> None:
        match kind:
            case None:
                self._refuse(f"no protocol begins with byte {self._first[0]}")
            case Kind.NEW:
                pass
            case Kind.KAFKA:
                connection = Connection(self._edge)
                self._edge.doorkeeper.becomes(self, connection, Kind.KAFKA)
                self._hand_over(connection)
            case Kind.LINK:
                self._open_link()
            case Kind.HTTP:
                self._open(self._http(), kind)
            case Kind.TEXT:
                self._open(self._text(), kind)

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle a close before the protocol was known or served."""
        self._edge.never_mind(self._go_on)
        self._edge.doorkeeper.leave(self)

    def overdue(self, now_ms: int) -> Refusal | None:
        """Limit the time to identify the protocol, and the wait for this broker to become ready.

        A cluster may have no leader for hours. A client that is disconnected tries another broker,
        or retries; one left waiting would wait until its own timeout, half a minute later.
        """
        if now_ms - self._since_ms <= self._edge.limits.first_byte_ms_max:
            return None
        return Refusal.CATCHING_UP if self._is_waiting else Refusal.FIRST_BYTE_TIME

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def finish(self) -> None:
        """Close: it has sent no request yet."""
        self._transport.abort()

    def _refuse(self, reason: str) -> None:
        peer = self._transport.get_extra_info("peername")
        self._edge.doorkeeper.complain(Refusal.PROTOCOL, peer, reason)
        self._transport.abort()

    def _open_link(self) -> None:
        if self._link is None:
            self._refuse("this broker is alone and has no links to others")
            return
        guest = LinkGuest(self._link(), self._edge)
        self._edge.doorkeeper.becomes(self, guest, Kind.LINK)
        self._hand_over(guest)

    def _hand_over(self, connection: Connection | LinkGuest) -> None:
        self._transport.set_protocol(connection)
        connection.connection_made(self._transport)
        first = memoryview(self._first)
        while first and not self._transport.is_closing():  # ends: each turn passes on some bytes
            room = connection.get_buffer(len(first))
            count = min(len(room), len(first))
            room[:count] = first[:count]
            connection.buffer_updated(count)
            first = first[count:]

    def _open(self, protocol: asyncio.Protocol, kind: Kind) -> None:
        guest = GuestProtocol(protocol, self._edge)
        self._edge.doorkeeper.becomes(self, guest, kind)
        # Reading restarts, because uvloop decides at its start how to deliver bytes: into a buffer
        # as here, or as an object as there.
        self._transport.pause_reading()
        self._transport.set_protocol(guest)
        guest.connection_made(self._transport)
        self._transport.resume_reading()
        guest.data_received(self._first)
