"""Brokers' links on loopback sockets, for tests."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from kafkaesque.net.config import LinkConfig
from kafkaesque.net.handshake import Identity
from kafkaesque.net.links import Links, Peer
from kafkaesque.net.ports import LinkPorts, Question
from kafkaesque.raft.messages import AppendRequest, Heartbeat, Message
from kafkaesque.raft.roster import Beat
from kafkaesque.types import GroupId, NodeId
from tests.net.identities import an_identity
from tests.net.messages import an_append

SECONDS_MAX = 120
QUICK = LinkConfig(backoff_ms_min=1, backoff_ms_max=5, refused_backoff_ms=5)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(SECONDS_MAX):
        while not is_so():  # noqa: ASYNC110  # links tell their broker, not the test
            await asyncio.sleep(0.001)


class End:
    """One broker's links, and everything that they reported."""

    def __init__(self, identity: Identity, config: LinkConfig = QUICK, **ports: Any) -> None:
        self.node = identity.node or 0
        self.messages: list[tuple[GroupId, Message]] = []
        self.beats: list[Beat] = []
        self.suspects: list[NodeId] = []
        defaults: dict[str, Any] = {
            "deliver": lambda group, message: self.messages.append((group, message)),
            "receive": self.beats.append,
            "on_suspect": self.suspects.append,
            "on_question": echo,
        }
        self.links = Links(identity, LinkPorts(**(defaults | ports)), config, random.Random(7))
        self.port = 0
        self._server: asyncio.Server

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.links.accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.links.start()

    def peer(self) -> Peer:
        return Peer(node=self.node, host="127.0.0.1", port=self.port)

    async def stop(self) -> None:
        self._server.close()
        await self.links.close()

    def opened(self, node: NodeId) -> int:
        """How many links to a node there have been."""
        return self.links.counters[node].opened

    def heartbeat(self, target: NodeId, group: GroupId = "g", commit: int = 0) -> bool:
        message = Heartbeat(source=self.node, target=target, term=1, commit=commit)
        return self.links.send(target, group, message)

    def append(self, target: NodeId, *batches: bytes, group: GroupId = "g", at: int = 0) -> bool:
        message = replace(an_append(*batches, prev_end=at), source=self.node, target=target)
        return self.links.send(target, group, message)

    def ends_of_appends(self, group: GroupId = "g") -> list[int]:
        return [
            message.prev_end
            for found, message in self.messages
            if found == group and isinstance(message, AppendRequest)
        ]


class Stranger:
    """A stranger that sends something on every connection, and is not a broker."""

    def __init__(self, greeting: bytes) -> None:
        self.met = 0
        self.address = ("127.0.0.1", 0)
        self._greeting = greeting

    async def greet(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        writer.write(self._greeting)
        writer.close()


@asynccontextmanager
async def strange(greeting: bytes) -> AsyncIterator[Stranger]:
    """Let a stranger listen."""
    stranger = Stranger(greeting)
    server = await asyncio.start_server(stranger.greet, "127.0.0.1", 0)
    stranger.address = server.sockets[0].getsockname()
    try:
        yield stranger
    finally:
        server.close()


def echo(question: Question) -> None:
    """Echo the request; kind 13 is refused, kind 99 is never answered."""
    if question.kind == 13:
        question.refuse("thirteen is not served")
    elif question.kind != 99:
        question.reply(bytes(question.data)[::-1])


def introduce(*ends: End) -> None:
    """Introduce all brokers to each other."""
    for end in ends:
        end.links.set_peers([other.peer() for other in ends])


async def linked(*ends: End) -> None:
    """Wait until all brokers are linked."""
    await until(lambda: all(len(end.links.nodes) == len(ends) - 1 for end in ends))


@asynccontextmanager
async def listening(*ends: End) -> AsyncIterator[None]:
    """Let them listen on separate ports, and stop in the end."""
    for end in ends:
        await end.listen()
    try:
        yield
    finally:
        for end in ends:
            await end.stop()


def some_ends(count: int, config: LinkConfig = QUICK) -> list[End]:
    return [End(an_identity(node), config) for node in range(1, count + 1)]
