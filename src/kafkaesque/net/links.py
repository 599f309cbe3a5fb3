"""The links of one broker: one to each other broker, kept open.

Of two brokers the one with the lower number dials, so that there is one connection and no race.
After losing a link, the dialer redials at once, then with growing pauses; the other side only
knocks: it connects and hangs up. If the peer's machine refuses the connection, the peer's process
is gone, and the broker learns it without waiting for a timeout. A newer connection of a node
replaces the older one, because the node uses the newer one.

Messages sent while there is no link are lost, as Raft expects of a network.
"""

import asyncio
import logging
import os
import random
import socket
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from msgspec import Struct

from kafkaesque.errors import KafkaesqueError, LinkError, PeerUnreachable
from kafkaesque.net.codec import (
    Call,
    Failure,
    ForGroup,
    Note,
    Received,
    Reply,
    encode_beat,
    encode_exchange,
    encode_message,
)
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.dialer import dial, knock
from kafkaesque.net.errors import AnswerLost, CallRefused, LinkRefused
from kafkaesque.net.frame_reader import SLAB_BYTES
from kafkaesque.net.handshake import NONCE_BYTES, Handshake, Identity, Opened
from kafkaesque.net.link import Link, LinkCounters
from kafkaesque.net.outbox import Sort, sort_of
from kafkaesque.net.ports import LinkPorts, Question
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.types import Buffer, GroupId, NodeId

log = logging.getLogger(__name__)

BRIEF_S = 1.0
"""A link that lasted less than this is not redialed at once."""


class Peer(Struct, frozen=True, kw_only=True):
    """Another broker and its address."""

    node: NodeId
    host: str
    port: int
    directory: bytes | None = None
    """If known, a broker with this number and another directory is refused."""


class Links:
    """Links to all peers: `start`, then send and call, then `close`; all in one loop.

    `chance` spreads the pauses between attempts. It also makes the nonces, so it must be
    cryptographically secure in production (`random.SystemRandom`).
    """

    def __init__(
        self, identity: Identity, ports: LinkPorts, config: LinkConfig, chance: random.Random
    ) -> None:
        self.counters: dict[NodeId, LinkCounters] = {}
        """Traffic to and from each peer."""
        self.refused = 0
        """Connections closed because they were not valid links."""
        self._identity = identity
        self._ports = ports
        self._config = config
        self._chance = chance
        self._slab = memoryview(bytearray(SLAB_BYTES))
        self._peers: dict[NodeId, Peer] = {}
        self._open: dict[NodeId, Link] = {}
        self._guests: set[Link] = set()
        """Links that are not open yet, or belong to visitors."""
        self._dialers: dict[NodeId, asyncio.Task[None]] = {}
        self._knocks: set[asyncio.Task[None]] = set()
        self._numbers = 0
        self._lines_second = 0
        self._lines = 0
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop

    # ── lifecycle ────────────────────────────────────────────────────────────────────────────

    def start(self, peers: Iterable[Peer] = ()) -> None:
        """Start to dial; call it in the loop. Incoming connections go to `accept`."""
        self._loop = asyncio.get_running_loop()
        self.set_peers(peers)

    def set_peers(self, peers: Iterable[Peer]) -> None:
        """Keep links to these peers from now on; links to others are closed."""
        node = self._identity.node
        wanted = {peer.node: peer for peer in peers if peer.node != node}
        for gone in self._peers.keys() - wanted.keys():
            if dialer := self._dialers.pop(gone, None):
                dialer.cancel()
            if link := self._open.get(gone):
                link.cut()
        self._peers = wanted
        for new in sorted(wanted.keys() - self._dialers.keys()):
            if node is not None and node < new:
                dialer = self._dialers[new] = self._loop.create_task(self._keep(new))
                dialer.add_done_callback(partial(self._dialer_ended, new))

    async def close(self) -> None:
        """Close all links; calls under way raise AnswerLost."""
        self._is_closed = True
        tasks = [*self._dialers.values(), *self._knocks]
        for task in tasks:
            task.cancel()
        for link in (*self._open.values(), *self._guests):
            link.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        for link in (*self._open.values(), *self._guests):
            link.cut()  # otherwise a peer that does not read would delay us
        await asyncio.sleep(0)  # lets the links notice
        self._dialers.clear()

    def accept(self) -> asyncio.BufferedProtocol:
        """Return the protocol of an incoming connection, whose bytes start with 0x01."""
        return self._link(self._identity, None)

    # ── sending ──────────────────────────────────────────────────────────────────────────────

    @property
    def nodes(self) -> list[NodeId]:
        """The nodes with an open link."""
        return sorted(self._open)

    def peer(self, node: NodeId) -> Opened | None:
        """Return a node's own description, while there is a link to it."""
        link = self._open.get(node)
        return link.peer if link is not None else None

    def send(self, node: NodeId, group: GroupId, message: Message) -> bool:
        """Send a message to a node's replica of a group; False if it is already lost.

        Appends of a group arrive in order, or not at all. Small messages may overtake them. Batches
        must not change any more.
        """
        assert message.source == self._identity.node
        assert message.target == node
        link = self._open.get(node)
        if link is None or link.peer is None:
            return False
        sort = sort_of(message)
        stream = group if sort is Sort.BULK else None
        return link.send(encode_message(group, message, link.peer.version), sort, stream)

    def is_sending(self, node: NodeId, group: GroupId) -> bool:
        """Return whether an append, or a piece of a state, still waits to be written to a node.

        If so, a heartbeat response, which overtakes them, does not mean that they were lost.
        """
        link = self._open.get(node)
        return link is not None and link.is_sending(group)

    def send_beat(self, beat: Beat) -> bool:
        """Send a beat to its target; it replaces one that still waits."""
        link = self._open.get(beat.target)
        return link is not None and link.send(encode_beat(beat), Sort.BEAT)

    def note(self, node: NodeId, kind: int, data: Buffer) -> bool:
        """Send a one-way message to a node; False if it is already lost."""
        link = self._open.get(node)
        return link is not None and link.send(
            encode_exchange(Note(kind=kind, data=data)), Sort.SMALL
        )

    async def call(
        self,
        node: NodeId,
        kind: int,
        data: Buffer,
        deadline_ms: int | None = None,
        *,
        pending_max: int | None = None,
    ) -> memoryview:
        """Call a node and return its reply; `pending_max` limits the calls that already wait.

        Raises PeerUnreachable if nothing was sent, CallRefused if the node refuses, AnswerLost if
        the link or the time ended before a reply came.
        """
        link = self._open.get(node)
        if link is None:
            raise PeerUnreachable(f"there is no link to node {node}")
        if pending_max is not None and len(link.calls) >= pending_max:
            raise PeerUnreachable(f"{len(link.calls)} calls to node {node} wait for answers")
        return await self._ask(link, kind, data, deadline_ms or self._config.call_ms_max)

    async def visit(
        self, address: tuple[str, int], kind: int, data: Buffer, deadline_ms: int | None = None
    ) -> tuple[Opened, memoryview]:
        """Call the broker at an address; return its identity and its reply.

        A broker joins this way when it knows only an address and the secret. Raises what `call`
        raises, and LinkRefused.
        """
        link = await self._dial_as_visitor(address)
        assert link.peer is not None, "it is open"
        try:
            answer = await self._ask(link, kind, data, deadline_ms or self._config.call_ms_max)
            return link.peer, answer
        finally:
            link.close()

    async def meet(self, address: tuple[str, int]) -> None:
        """Check whether the broker at an address would accept a link with us.

        Raises PeerUnreachable, MalformedLink, and LinkRefused if not.
        """
        (await self._dial_as_visitor(address)).close()

    async def _dial_as_visitor(self, address: tuple[str, int]) -> Link:
        host, port = address
        make = partial(self._link, replace(self._identity, node=None), (None,))
        try:
            return await dial(make, host, port, self._config.dial_ms_max)
        except OSError as error:
            raise PeerUnreachable(f"cannot connect: {_reason(error)}") from error

    async def _ask(self, link: Link, kind: int, data: Buffer, deadline_ms: int) -> memoryview:
        if len(link.calls) >= self._config.calls_pending_max:
            raise PeerUnreachable(f"{len(link.calls)} calls to the broker already wait for answers")
        self._numbers += 1
        number = self._numbers
        parts = encode_exchange(Call(number=number, kind=kind, data=data))
        if not link.send(parts, Sort.SMALL):
            raise PeerUnreachable("the broker does not read what we send")
        answer: asyncio.Future[memoryview] = self._loop.create_future()
        link.calls[number] = answer
        try:
            async with asyncio.timeout(deadline_ms / 1000):
                return await answer
        except TimeoutError:
            raise AnswerLost(f"no answer came within {deadline_ms} ms") from None
        finally:
            link.calls.pop(number, None)

    # ── link callbacks ───────────────────────────────────────────────────────────────────────

    def connected(self, link: Link) -> str | None:
        """Register a connection that has not proven anything yet."""
        self._guests.add(link)
        if self._is_closed:
            return "the broker is stopping"
        unproven = sum(guest.peer is None and not guest.is_dialed for guest in self._guests)
        if unproven > self._config.handshakes_max:
            return "too many brokers are opening links at once"
        return None

    def opened(self, link: Link) -> None:
        """Register a link that both sides have accepted."""
        peer = link.peer
        assert peer is not None
        node = peer.node
        if node is None or link.is_visit:
            return
        self._guests.discard(link)
        before = self._open.get(node)
        self._open[node] = link
        if before is not None:
            before.cut()
        total = self.counters.setdefault(node, LinkCounters())
        total.opened += 1
        link.counters = total
        log.info("link_opened node=%d session=%d peer=%s", node, peer.session, link.address)

    def received(self, link: Link, items: list[Received]) -> None:
        """Dispatch the items received over a link."""
        ports = self._ports
        for item in items:
            match item:
                case ForGroup(group=group, message=message):
                    ports.deliver(group, message)
                case Beat():
                    ports.receive(item)
                case Call():
                    self._on_call(link, item)
                case Note(kind=kind, data=data):
                    assert link.peer is not None
                    assert link.peer.node is not None, "visitors only make calls"
                    ports.on_note(link.peer.node, kind, memoryview(data))
                case Reply(number=number, data=data):
                    answer = link.calls.get(number)
                    if answer is not None and not answer.done():
                        answer.set_result(memoryview(data))
                case Failure(number=number, reason=reason):
                    answer = link.calls.get(number)
                    if answer is not None and not answer.done():
                        answer.set_exception(CallRefused(reason))
        ports.on_received()

    def lost(self, link: Link, error: KafkaesqueError | None) -> None:
        """Fail the link's pending calls; check whether the peer is gone if this was its link."""
        self._guests.discard(link)
        for answer in link.calls.values():
            if not answer.done():
                answer.set_exception(AnswerLost("the link was lost before the answer came"))
        if error is not None:
            self.refused += 1
            self._complain(link, error)
        node = link.peer.node if link.peer is not None else None
        if node is None or self._open.get(node) is not link:
            return
        del self._open[node]
        log.info("link_lost node=%d", node)
        if self._is_closed:
            return
        if not link.is_dialed and node in self._peers:
            knock = self._loop.create_task(self._knock(self._peers[node]))
            self._knocks.add(knock)
            knock.add_done_callback(self._knocks.discard)

    def _on_call(self, link: Link, call: Call) -> None:
        assert link.peer is not None
        link.asked += 1
        answer = partial(self._answer, link)
        data = memoryview(call.data)
        question = Question(link.peer.node, call.kind, data, call.number, answer)
        if link.asked > self._config.calls_pending_max:
            question.refuse("too many calls of this broker are unanswered")
        else:
            self._ports.on_question(question)

    def _answer(self, link: Link, item: Reply | Failure) -> None:
        link.asked -= 1
        link.send(encode_exchange(item), Sort.SMALL)

    # ── dialing ──────────────────────────────────────────────────────────────────────────────

    async def _keep(self, node: NodeId) -> None:
        """Keep a link to a node: dial, wait until it is lost, dial again."""
        failures = 0
        was_open = False
        while True:  # ends when cancelled
            peer = self._peers[node]
            pause_ms = self._pause_ms(failures)
            make = partial(self._link, self._identity, (node,))
            try:
                link = await dial(make, peer.host, peer.port, self._config.dial_ms_max)
            except ConnectionRefusedError:
                if was_open:
                    was_open = False
                    self._ports.on_suspect(node)
            except LinkRefused:
                pause_ms = self._config.refused_backoff_ms
            except (OSError, LinkError):
                pass
            else:
                opened_s = self._loop.time()
                await link.gone.wait()
                was_open = True
                if self._loop.time() - opened_s >= BRIEF_S:
                    failures = 0
                    continue
            failures += 1
            await asyncio.sleep(pause_ms / 1000)

    def _dialer_ended(self, node: NodeId, dialer: "asyncio.Task[None]") -> None:
        """Restart a dialer that was not cancelled: a bug must not be the end of a link."""
        if dialer.cancelled() or self._dialers.get(node) is not dialer:
            return
        del self._dialers[node]
        self.set_peers(self._peers.values())
        dialer.result()  # raises, so that the loop logs it

    def _pause_ms(self, failures: int) -> float:
        """Return the pause after this many failures: exponential, with jitter."""
        config = self._config
        longest = min(config.backoff_ms_max, config.backoff_ms_min << min(failures, 20))
        return longest * (0.5 + self._chance.random() / 2)

    async def _knock(self, peer: Peer) -> None:
        """Check whether a node that we do not dial still has a listening process."""
        try:
            await knock(peer.host, peer.port, self._config.dial_ms_max)
        except ConnectionRefusedError:
            if peer.node not in self._open:
                self._ports.on_suspect(peer.node)
        except OSError:
            pass  # unreachable: that says nothing about the process

    def _link(self, identity: Identity, wanted: tuple[NodeId | None] | None) -> Link:
        nonce = self._chance.randbytes(NONCE_BYTES)
        handshake = Handshake(identity, nonce, self._admits, self._config.version_max)
        return Link(self, handshake, self._config, self._slab, wanted)

    def _admits(self, node: NodeId | None, directory: bytes) -> str | None:
        known = self._peers.get(node) if node is not None else None
        if known is not None and known.directory not in (None, directory):
            return f"node {node} has lost its data folder: it must join as a new node"
        return self._ports.admits(node, directory)

    def _complain(self, link: Link, error: KafkaesqueError) -> None:
        """Log why a connection was closed, up to a number of lines per second."""
        second = int(self._loop.time())
        if second != self._lines_second:
            self._lines_second, self._lines = second, 0
        self._lines += 1
        if self._lines <= self._config.lines_per_second_max:
            # While a broker stops, others still try to reach it, which is expected.
            level = logging.INFO if self._is_closed else logging.WARNING
            log.log(level, "link_refused peer=%s reason=%r", link.address, str(error))


def _reason(error: OSError) -> str:
    """Return the reason for a failed connection, without the address, which the caller knows."""
    match error:
        case TimeoutError():
            return "no answer in time"
        case OSError(errno=int(number)) if number > 0 and not isinstance(error, socket.gaierror):
            return os.strerror(number)
        case _:
            return error.strerror or str(error)
