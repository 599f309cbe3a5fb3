"""The composition root: builds a broker with all its dependencies, and runs it."""

import asyncio
import os
import random
import signal
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.membership import Membership
from kafkaesque.broker.storage.identity import KnownPeer, save_identity
from kafkaesque.broker.storage.store import Store
from kafkaesque.callbacks import ignore
from kafkaesque.clock import Clock, SystemClock
from kafkaesque.config import BrokerConfig, LogConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import KafkaesqueError, LogError
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_gateway import TextGateway
from kafkaesque.gossip.config import GossipConfig
from kafkaesque.gossip.messages import Member
from kafkaesque.log.errors import DiskFailed
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.machines.catalog.features import supported
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.gossip_transport import TICK_MS as GOSSIP_TICK_MS
from kafkaesque.server.edge.door import Door
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.edge.event_log import EventLog
from kafkaesque.server.edge.listening_sockets import listening_sockets, stop_listening
from kafkaesque.server.edge.memory import settle_memory
from kafkaesque.server.edge.problem_watch import LOOK_MS as WATCH_MS
from kafkaesque.server.peers.broker_identity import SECRET_NAME, Place, begin, identify, secret_of
from kafkaesque.server.peers.cluster_channel import ClusterChannel, Forwarded, forwarding
from kafkaesque.server.peers.cluster_rejoin import rejoin
from kafkaesque.server.peers.local_channel import LocalChannel
from kafkaesque.server.peers.peering import Peering
from kafkaesque.server.requests.addresses import is_local, parse_address, reachable_name, shown
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.server_config import EventsConfig, LimitsConfig, ServerConfig, TextLimits
from kafkaesque.types import NodeId

T = TypeVar("T")

WAITING_S = 5.0
"""A broker that is not ready by then reports that it waits for others."""

SWEEP_MS = 1_000
"""How often to look for connections that stayed too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Where a broker listens and stores data, which cluster it joins, and its other settings."""

    host: str = ServerConfig().listen
    port: int = ServerConfig().port
    data: Path = ServerConfig().data
    advertised: str = ServerConfig().advertised
    join: str = ServerConfig().join
    rack: str = ServerConfig().rack
    secret_file: Path = ServerConfig().secret_file
    rejoins: bool = False
    """Whether the journal is lost, and the others must send this broker everything again."""
    stop_ms: int = ServerConfig().stop_ms
    linger_ms: int = ServerConfig().linger_ms
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    log: LogConfig = field(default_factory=LogConfig)
    text: TextLimits = field(default_factory=TextLimits)
    events: EventsConfig = field(default_factory=EventsConfig)
    links: LinkConfig = field(default_factory=LinkConfig)
    gossip: GossipConfig = field(default_factory=GossipConfig)


class Node:
    """A running broker: `start`, then `port` is where it listens, then `stop`."""

    def __init__(
        self,
        settings: NodeSettings,
        broker: BrokerConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._config = broker or BrokerConfig()
        self._clock = clock or SystemClock()
        self._events = EventLog(self._clock, settings.events)
        self.failure: asyncio.Future[LogError]
        self.node: NodeId = 0
        """This broker's number in the cluster."""
        self.port = 0
        self.addresses: list[str] = []
        """Where it listens, in display form."""
        self.on_waiting: Callable[[], None] = ignore
        """Called when the cluster takes long to let this broker serve."""
        self._is_stopped = False
        self._has_begun = False
        """Whether the broker has opened its data: only then is there anything to stop."""
        self._turn = Turn()
        self._servers: list[asyncio.Server] = []
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._standing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the data folder, listen and become ready; a stopped node can start again.

        Other brokers may connect at once, clients as soon as this broker has caught up.
        """
        self._is_stopped = self._has_begun = False
        self.addresses.clear()
        self._servers.clear()
        settings = self._settings
        advertised = parse_address(settings.advertised) if settings.advertised else None
        self._loop = asyncio.get_running_loop()
        self.failure = self._loop.create_future()
        try:
            self._disk = PosixDisk(settings.data, post=self._post)
        except OSError as error:
            folder = settings.data
            raise DiskFailed(f"cannot use {folder} for data: {error.strerror}") from error
        sockets: list[socket.socket] = []
        try:
            self._disk.lock()
            sockets = self._bind()
            await self._open(advertised)
        except KafkaesqueError:
            for sock in sockets:
                sock.close()
            self._disk.close()
            raise
        self.edge = Edge(self.broker, settings.limits, self._clock, advertised, self._turn)
        local = LocalChannel(self.broker, settings.host, self.port)
        self._peering.on_request = Forwarded(local, self.edge).answer
        self.edge.forward = forwarding(self._peering.links)
        self.edge.links = self._peering.links.counters
        self.edge.event_counts = self._events.counts
        channel = ClusterChannel(self.broker, local, self._peering.links)
        self._text = TextGateway(TextDesk(channel, self._clock, settings.text))
        await self._listen(sockets)
        try:
            await self._become_ready()
        except LogError:
            await self.stop()
            raise

    def _bind(self) -> list[socket.socket]:
        settings = self._settings
        sockets = listening_sockets(settings.host, settings.port, settings.limits.listen_backlog)
        for sock in sockets:
            address = sock.getsockname()
            self.port = address[1]
            self.addresses.append(shown(address[0], address[1]))
        return sockets

    async def _open(self, advertised: tuple[str, int] | None) -> None:
        """Build the broker and all its dependencies."""
        settings = self._settings
        given = settings.secret_file if settings.secret_file != Path() else None
        secret = secret_of(settings.data, given, settings.host)
        host, port = advertised or (reachable_name(settings.host), self.port)
        place = Place(host=host, port=port, rack=settings.rack, join=settings.join)
        supports = supported(self._config.cluster.catalog_version_max)
        folder = await identify(
            self._disk,
            place,
            secret,
            settings.links,
            supports,
            may_lack_journal=settings.rejoins,
        )
        if settings.rejoins:
            await rejoin(self._disk, settings.log, folder, secret, settings.links, self._events)
        self.node = folder.node
        store = Store.open(
            self._disk, settings.log, self._clock, folder.node, self._on_failed, self._events
        )
        store.flusher.on_wanted = partial(self._turn.soon, store.flusher.kick)
        run_slice = partial(self._as_event, store.slices.run)

        def run_soon() -> None:
            self._loop.call_soon(run_slice)  # after events already queued

        store.slices.on_wanted = run_soon
        self._folder = folder = begin(self._disk, folder, store.journal.node)
        me = Member(
            node=folder.node,
            host=host,
            port=port,
            rack=settings.rack,
            incarnation=self._clock.now_ms(),
        )
        self._peering = Peering(
            folder,
            me,
            secret,
            (settings.links, settings.gossip),
            self._turn,
            supports,
            [parse_address(settings.join)] if settings.join else [],
        )
        self._peering.on_peers = self._remember
        membership = Membership(
            peers=self._peering,
            voters=Voters(voters=(folder.node,) if folder.is_founder else ()),
            host=host,
            port=port,
            rack=settings.rack,
            directory=folder.directory,
            cluster=folder.cluster,
        )
        self.broker = Broker(
            folder.node,
            store,
            self._clock,
            random.Random(),
            self._config,
            self._on_failed,
            membership,
        )
        self._peering.attach(self.broker)

    async def _become_ready(self) -> None:
        ready = asyncio.Event()
        self.failure.add_done_callback(lambda _: ready.set())
        self._peering.start()
        self.broker.start(ready.set)
        self._has_begun = True
        self._repeat("tick", self._config.tick_ms, self.broker.tick)
        self._repeat("sweep", SWEEP_MS, self.edge.sweep)
        self._repeat("events", SWEEP_MS, self._events.sweep)
        self._repeat("watch", WATCH_MS, self.edge.watch.look)
        self._repeat("gossip", GOSSIP_TICK_MS, self._peering.gossiping.tick)
        waiting = self._loop.call_later(WAITING_S, lambda: self.on_waiting())
        self._standing = self._loop.create_task(
            self._peering.watch_standing(lambda said: self._on_failed(LogError(said)))
        )
        try:
            await ready.wait()
        finally:
            waiting.cancel()
        if self.failure.done():
            raise self.failure.result()
        self.edge.open()

    @property
    def waits_for(self) -> list[str]:
        """The brokers without a link, as `3 at host:port`: the cluster may need them to serve."""
        linked = set(self._peering.links.nodes)
        return [
            f"{peer.node} at {shown(peer.host, peer.port)}"
            for peer in self._peering.known
            if peer.node not in linked
        ]

    @property
    def join_command(self) -> str:
        """The command that adds a broker to this one's cluster."""
        settings = self._settings
        host = "localhost" if is_local(settings.host) else reachable_name(settings.host)
        command = f"kafkaesque serve --join {shown(host, self.port)} --port 0 --data DIR"
        if is_local(settings.host):
            return command
        return f"{command} --listen ADDRESS --secret-file {settings.data / SECRET_NAME}"

    def _remember(self, peers: tuple[KnownPeer, ...]) -> None:
        """Save the peers' addresses for the next start."""
        self._folder = msgspec.structs.replace(self._folder, peers=peers)
        try:
            save_identity(self._disk, self._folder)
        except LogError as error:
            self._on_failed(error)

    def _post(self, done: Callable[[], None]) -> None:
        """Run a disk completion on the loop; called from any thread."""
        self._loop.call_soon_threadsafe(self._as_event, done)

    def _as_event(self, action: Callable[[], None]) -> None:
        """Run an action and its deferred callbacks before any other event."""
        self._turn.begin()
        try:
            action()
        finally:
            self._turn.end()

    async def _listen(self, sockets: list[socket.socket]) -> None:
        backlog = self._settings.limits.listen_backlog
        for sock in sockets:
            server = await self._loop.create_server(self._door, sock=sock, backlog=backlog)
            self._servers.append(server)

    def _door(self) -> Door:
        return Door(
            self.edge,
            http=self._http,
            text=self._text.connection,
            link=self._peering.links.accept,
        )

    def _http(self) -> asyncio.Protocol:
        from kafkaesque.server.http.pages import http_connection  # imported late to start faster

        return http_connection(self.edge, self._trouble)

    def _trouble(self) -> str | None:
        """Return why this node does not serve, or None."""
        if self.failure.done():
            return f"the broker stops: {self.failure.result()}"
        if self.edge.stopping.is_begun:
            return "the broker is stopping"
        return None if self.edge.is_open else "the broker is catching up with its cluster"

    async def stop(self) -> None:
        """Stop cleanly: accept no more requests, finish those in progress, make everything durable.

        Long polls are answered at once; other requests have `stop_ms`. Stopping again does nothing.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        if self.edge.is_open and not self.failure.done():
            await self._hand_over()
        await stop_listening(self._servers)
        left = asyncio.Event()
        self.edge.doorkeeper.on_empty = left.set
        self.edge.finish()
        if self.edge.doorkeeper.clients:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.stop_ms / 1000):
                    await left.wait()
        self.edge.abort()
        await asyncio.sleep(0)  # lets the connections notice
        await self._text.stop()
        self._stop_timers()
        if self._standing is not None:
            self._standing.cancel()
        await self._peering.close()
        self._close()

    async def _hand_over(self) -> None:
        """Hand leadership to others, so that clients find them while this broker still answers."""
        handed = asyncio.Event()
        self.broker.hand_over(handed.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.stop_ms / 1000):
                await handed.wait()
        # A client that receives NOT_LEADER in time moves on its own. One whose connection breaks
        # dials again and again, and stays away for up to ten seconds after that (librdkafka).
        if self.broker.has_others and self.edge.doorkeeper.clients:
            await asyncio.sleep(self._settings.linger_ms / 1000)

    def _close(self) -> None:
        try:
            if self._has_begun:  # else the folder stays as it was found
                self.broker.stop()
        finally:  # on a full disk the journal stands as after a kill
            self._disk.close()
            self._events.flush()

    def _repeat(self, name: str, period_ms: int, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        again = partial(self._repeat, name, period_ms, action)
        # Before the action: an error in one run must not stop all later runs.
        self._timers[name] = loop.call_later(period_ms / 1000, again)
        self._as_event(action)

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _on_failed(self, error: LogError) -> None:
        if not self.failure.done():
            self.failure.set_result(error)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop if installed, else on asyncio's own loop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


async def serve(
    settings: NodeSettings,
    started: Callable[[Node], None],
    broker: BrokerConfig | None = None,
    on_waiting: Callable[[Node], None] | None = None,
) -> LogError | None:
    """Run until a signal arrives or the disk fails; return the failure.

    `on_waiting` is called if the cluster does not let the broker serve for a while. A second signal
    ends the process at once, as a crash would: acknowledged data is durable.
    """
    node = Node(settings, broker)
    if on_waiting is not None:
        node.on_waiting = partial(on_waiting, node)
    await node.start()
    settle_memory()
    stopped = asyncio.Event()

    def on_signal(number: int) -> None:
        if stopped.is_set():
            os._exit(128 + number)
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    node.failure.add_done_callback(lambda _: stopped.set())
    started(node)
    await stopped.wait()
    if node.failure.done():
        node.edge.abort()  # requests in progress are cancelled with the loop; that is no error
        return node.failure.result()
    await node.stop()
    return None
