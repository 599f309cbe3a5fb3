"""One connection to another broker: first the handshake, then frames both ways.

    dialing ──hello, proof──▶ open ──any error, either side hangs up──▶ lost

All frames sent in one turn of the loop are written at once. Large parts are handed over without
copying. Data that the peer is not ready for waits in its outbox, which is bounded, and where small
frames overtake large ones.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Hashable
from typing import Protocol, cast

from kafkaesque.errors import KafkaesqueError, MalformedFrame, PeerUnreachable
from kafkaesque.net.codec import Call, Decoder, Failure, Received, Reply
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.errors import LinkRefused, MalformedLink, SecretMissing
from kafkaesque.net.frame_reader import LENGTH, Receiver
from kafkaesque.net.frame_writer import joined, no_delay
from kafkaesque.net.handshake import (
    FIRST_BYTE,
    HANDSHAKE_BYTES_MAX,
    PIECES_SINCE,
    Handshake,
    Opened,
    refusal_frame,
)
from kafkaesque.net.outbox import Outbox, Sort
from kafkaesque.net.pieces import Gathering
from kafkaesque.types import Buffer, NodeId

WRITE_BYTES = 256 << 10
"""Handed to the transport at a time, before it may ask to pause."""

NO_SECRET = "a cluster without a secret allows links only within its machine"

_NOBODY: NodeId = 0


class LinkOwner(Protocol):
    """The owner of a dialed or accepted link; it is notified of the link's events."""

    def connected(self, link: "Link") -> str | None:
        """Handle a new connection; return a reason to close it, or None."""
        ...

    def opened(self, link: "Link") -> None:
        """Handle a link that both sides have accepted; `link.peer` identifies the other side."""
        ...

    def received(self, link: "Link", items: list[Received]) -> None:
        """Handle the items of one read, in order."""
        ...

    def lost(self, link: "Link", error: KafkaesqueError | None) -> None:
        """Handle the end of a link, with the reason if known; called even if it was never open."""
        ...


class LinkCounters:
    """Traffic to and from a peer, over all links to it so far."""

    __slots__ = (
        "dropped_messages",
        "opened",
        "received_bytes",
        "received_messages",
        "sent_bytes",
        "sent_messages",
    )

    def __init__(self) -> None:
        self.sent_bytes = 0
        self.sent_messages = 0
        self.received_bytes = 0
        self.received_messages = 0
        self.dropped_messages = 0
        self.opened = 0


class Link(asyncio.BufferedProtocol):
    """A connection to a broker, dialed by either side."""

    def __init__(
        self,
        owner: LinkOwner,
        handshake: Handshake,
        config: LinkConfig,
        slab: memoryview,
        wanted: tuple[NodeId | None] | None = None,
    ) -> None:
        """`wanted` is the node to dial; without it the other side has dialed."""
        self.peer: Opened | None = None
        self.counters = LinkCounters()
        self.calls: dict[int, asyncio.Future[memoryview]] = {}
        self.asked = 0
        """Calls of the peer that are still unanswered."""
        self.is_lost = False
        self.address = ""
        """The peer's address, for messages."""
        self.gone = asyncio.Event()
        """Set when the link is lost."""
        self.ready: asyncio.Future[None]
        """Done when the link is open; raises if it never opens."""
        self._owner = owner
        self._handshake = handshake
        self._config = config
        self._slab = slab
        self._wanted = wanted
        self._is_first_byte_due = wanted is None
        self._handshake_bytes = 0
        self._receiver = Receiver(slab, HANDSHAKE_BYTES_MAX)
        self._outbox = Outbox(config)
        self._decoder: Decoder
        self._error: KafkaesqueError | None = None
        self._is_writable = True
        self._is_write_due = False
        self._loop: asyncio.AbstractEventLoop
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    @property
    def is_dialed(self) -> bool:
        """Whether we dialed."""
        return self._wanted is not None

    @property
    def is_visit(self) -> bool:
        """Return whether we dialed as a visitor: then no member owns the link."""
        return self._handshake.node is None

    # ── transport callbacks ──────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake, or wait for it."""
        config = self._config
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass
        self._transport.set_write_buffer_limits(high=config.write_buffer_bytes_max)
        no_delay(transport)
        _cut_when_silent(transport, config.silence_ms_max)
        _keep_unsent_short(transport, config.unsent_bytes_max)
        late_s = config.handshake_ms_max / 1000
        self._timer = self._loop.call_later(late_s, self._on_late)
        self.ready = self._loop.create_future()
        peer = transport.get_extra_info("peername")
        self.address = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "this machine"
        objection = self._owner.connected(self)
        if not self._handshake.has_secret and not is_this_machine(peer):
            self._refuse(SecretMissing(NO_SECRET, refusal_frame(NO_SECRET)))
        elif objection is not None:
            self.refuse(objection)
        elif self._wanted is not None:
            hello = self._handshake.dial(self._wanted[0])
            self._transport.write(FIRST_BYTE + LENGTH.pack(len(hello)) + hello)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes; the very first byte is not part of a frame."""
        return self._slab[:1] if self._is_first_byte_due else self._receiver.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on complete frames; cut the link on anything that is not one."""
        if self._transport.is_closing():
            return
        self.counters.received_bytes += nbytes
        try:
            if self._is_first_byte_due:
                self._take_first_byte()
                return
            frames = self._receiver.received(nbytes)
            if self.peer is None:
                frames = self._shake_hands(frames, nbytes)
            if frames and self.peer is not None:
                decode = self._decoder.decode
                items = [item for frame in frames if (item := decode(frame)) is not None]
                self.counters.received_messages += len(items)
                if self.peer.node is None:
                    _check_visitor(items)
                self._owner.received(self, items)
        except LinkRefused as error:
            self._refuse(error)
        except MalformedLink as error:
            self.cut(error)
        except MalformedFrame as error:  # the dialer expects a LinkError
            self.cut(MalformedLink(str(error)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify everything that waits for answers."""
        self.is_lost = True
        self._timer.cancel()
        self._is_writable = False
        self.gone.set()
        if not self.ready.done():
            self.ready.set_exception(self._error or PeerUnreachable("the other side hung up"))
            self.ready.exception()  # nothing waits for an accepted link
        self._owner.lost(self, self._error)

    def pause_writing(self) -> None:
        """Stop writing: the peer does not read as fast as we write."""
        self._is_writable = False

    def resume_writing(self) -> None:
        """Continue writing."""
        self._is_writable = True
        self._write()

    # ── for the owner ────────────────────────────────────────────────────────────────────────

    def send(self, parts: list[Buffer], sort: Sort, stream: Hashable = None) -> bool:
        """Send a frame, together with others sent in this turn; False if it is dropped.

        Frames of one stream do not overtake each other.
        """
        dropped = self._outbox.dropped
        is_taken = not self.is_lost and self._outbox.put(parts, sort, stream)
        self.counters.dropped_messages += self._outbox.dropped - dropped
        if is_taken and self._is_writable and not self._is_write_due:
            self._is_write_due = True
            self._loop.call_soon(self._write)
        return is_taken

    def is_sending(self, stream: Hashable) -> bool:
        """Return whether a bulky frame of a stream still waits to be written."""
        return self._outbox.holds(stream)

    def cut(self, error: KafkaesqueError | None = None) -> None:
        """Hang up at once."""
        self._error = self._error or error
        self._transport.abort()

    def close(self) -> None:
        """Hang up after writing what was handed to the system."""
        self._write()
        self._transport.close()

    def refuse(self, reason: str) -> None:
        """Send the other side the reason for refusing the link, and hang up."""
        self._refuse(LinkRefused(reason, refusal_frame(reason)))

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _take_first_byte(self) -> None:
        self._is_first_byte_due = False
        if self._slab[:1] != FIRST_BYTE:
            raise MalformedLink(f"a link does not start with byte {self._slab[0]}")

    def _shake_hands(self, frames: list[memoryview], nbytes: int) -> list[memoryview]:
        """Handle the handshake's frames; return those after it."""
        handshake = self._handshake
        self._handshake_bytes += nbytes
        if not handshake.is_proven and self._handshake_bytes > HANDSHAKE_BYTES_MAX:
            raise MalformedLink(f"more than {HANDSHAKE_BYTES_MAX} bytes before any proof")
        for position, frame in enumerate(frames):
            answer = handshake.receive(frame)
            if answer is not None:
                self._transport.write(LENGTH.pack(len(answer)) + answer)
            if handshake.is_proven:
                self._trust()
            if handshake.peer is not None:
                self._open(handshake.peer)
                return frames[position + 1 :]
        return []

    def _trust(self) -> None:
        self._receiver.frame_bytes_max = self._config.frame_bytes_max
        self._receiver.claimed_bytes_max = self._config.claimed_bytes_max

    def _open(self, peer: Opened) -> None:
        self._timer.cancel()
        self.peer = peer
        gathering = None
        if peer.version >= PIECES_SINCE:
            config = self._config
            gathering = Gathering(config.frame_bytes_max, config.claimed_bytes_max)
            self._outbox.cuts = True
        ends = peer.node or _NOBODY, self._handshake.node or _NOBODY
        self._decoder = Decoder(*ends, gathering)
        self._owner.opened(self)
        if not self.ready.done():
            self.ready.set_result(None)

    def _refuse(self, error: LinkRefused) -> None:
        self._error = error
        if error.answer is not None:
            self._transport.write(LENGTH.pack(len(error.answer)) + error.answer)
        self._transport.close()

    def _on_late(self) -> None:
        self.cut(MalformedLink("the other side did not prove itself in time"))

    def _write(self) -> None:
        self._is_write_due = False
        outbox, transport, counters = self._outbox, self._transport, self.counters
        while outbox and self._is_writable:  # terminates: each turn removes messages
            parts, count = outbox.take(WRITE_BYTES)
            counters.sent_messages += count
            for part in joined(parts):
                counters.sent_bytes += len(part)
                transport.write(part)


def _check_visitor(items: list[Received]) -> None:
    if not all(isinstance(item, Call | Reply | Failure) for item in items):
        raise MalformedLink("a visitor sent a frame that only members may send")


def is_this_machine(peername: object) -> bool:
    """Return whether a socket's other end is on this machine, so that no secret is needed."""
    if not isinstance(peername, tuple):
        return True
    address = ipaddress.ip_address(str(peername[0]).partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _cut_when_silent(transport: asyncio.BaseTransport, silence_ms: int) -> None:
    """Make the system give up on a peer that stops receiving: a cut cable goes unnoticed."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, silence_ms)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, silence_ms // 2000))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, silence_ms // 4000))


def _keep_unsent_short(transport: asyncio.BaseTransport, unsent_bytes: int) -> None:
    """Make the system buffer little unsent data: frames cannot overtake it any more."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # Linux and macOS
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent_bytes)
