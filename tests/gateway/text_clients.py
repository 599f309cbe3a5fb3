"""A running node with the text protocol beside it, and clients that type at it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from kafkaesque.client.channel import Channel
from kafkaesque.clock import SystemClock
from kafkaesque.config import BrokerConfig
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_gateway import TextGateway
from kafkaesque.node import Node, NodeSettings
from kafkaesque.server.peers.local_channel import LocalChannel
from kafkaesque.server_config import TextLimits

SECONDS_MAX = 120


class TextClient:
    """Types lines and reads lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def type(self, text: str) -> None:
        """Send one line."""
        self.writer.write(text.encode() + b"\r\n")

    async def line(self) -> str:
        """Return the next line, without its end."""
        async with asyncio.timeout(SECONDS_MAX):
            line = await self.reader.readline()
        assert line.endswith(b"\r\n"), f"no whole line came: {line!r}"
        return line[:-2].decode()

    async def ask(self, text: str) -> str:
        """Send one line and return the next."""
        self.type(text)
        return await self.line()

    async def data(self, text: str) -> list[Any]:
        """Send one line and return the content of its OK answer."""
        answer = msgspec.json.decode(await self.ask(text))
        assert answer["Ok"], answer
        found: list[Any] = answer["Data"]
        return found

    async def error(self, text: str) -> str:
        """Send one line and return the sentence of its error answer."""
        answer = msgspec.json.decode(await self.ask(text))
        assert not answer["Ok"], answer
        sentence: str = answer["Error"]
        return sentence

    async def is_closed(self) -> bool:
        """Return whether the broker disconnects without another line."""
        async with asyncio.timeout(SECONDS_MAX):
            return await self.reader.read(1) == b""


class TextBroker:
    """The node, the desk, and a way to connect."""

    def __init__(self, node: Node, desk: TextDesk, port: int) -> None:
        self.node = node
        self.desk = desk
        self.port = port
        self._clients: list[TextClient] = []

    async def connect(self) -> TextClient:
        """Return a new client."""
        limit = 64 << 20  # the longest line that a test reads
        streams = await asyncio.open_connection("127.0.0.1", self.port, limit=limit)
        self._clients.append(TextClient(*streams))
        return self._clients[-1]

    def close(self) -> None:
        """Disconnect all clients."""
        for client in self._clients:
            client.writer.close()


@asynccontextmanager
async def text_broker(
    data: Path,
    *,
    config: BrokerConfig | None = None,
    limits: TextLimits | None = None,
    wrap: type[Any] | None = None,
) -> AsyncIterator[TextBroker]:
    """Run a node, and the text protocol on a separate port; `wrap` may replace its channel."""
    node = Node(NodeSettings(port=0, data=data), config)
    await node.start()
    channel: Channel = LocalChannel(node.broker, "127.0.0.1", node.port)
    desk = TextDesk(channel if wrap is None else wrap(channel), SystemClock(), limits)
    gateway = TextGateway(desk)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(gateway.connection, "127.0.0.1", 0, backlog=4096)
    broker = TextBroker(node, desk, server.sockets[0].getsockname()[1])
    try:
        yield broker
    finally:
        broker.close()
        server.close()
        await gateway.stop()
        await node.stop()
