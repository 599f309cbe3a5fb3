"""A running node for tests: on either loop, with limits and a clock set by the test."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from kafkaesque.node import Node, NodeSettings
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.server_config import LimitsConfig
from kafkaesque.wire.codec import encode
from kafkaesque.wire.header import RequestHeader, encode_request_header, request_header_version
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest
from kafkaesque.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

SECONDS_MAX = 120
LOOPS = ("asyncio", "uvloop")


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def run_on(loop: str, main: Coroutine[Any, Any, None]) -> None:
    """Run on the loop of this name."""
    if loop == "uvloop":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)
    else:
        asyncio.run(main)


class Peer:
    """The client's end of a connection, in bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> bytes:
        """Read one Kafka answer, without its length."""
        async with asyncio.timeout(SECONDS_MAX):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def correlation(self) -> int:
        """Read one Kafka answer and return its correlation id."""
        found: int = struct.unpack_from(">i", await self.answer())[0]
        return found

    async def rest(self) -> bytes:
        """Read until the broker hangs up."""
        async with asyncio.timeout(SECONDS_MAX):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def line(self) -> bytes:
        """Read one line."""
        async with asyncio.timeout(SECONDS_MAX):
            return await self.reader.readline()


class Running:
    """A node, and ways to reach it."""

    def __init__(self, node: Node, clock: ManualClock) -> None:
        self.node = node
        self.clock = clock
        self._peers: list[Peer] = []

    async def connect(self, host: str = "127.0.0.1") -> Peer:
        self._peers.append(Peer(*await asyncio.open_connection(host, self.node.port)))
        return self._peers[-1]

    async def pass_time(self, ms: int) -> None:
        """Let time pass for connections, once everything sent so far has arrived."""
        await self.serves()
        self.clock.ms += ms
        self.node.edge.sweep()

    async def serves(self) -> None:
        """Fail unless a new client is answered."""
        peer = await self.connect()
        peer.send(an_api_versions(77))
        assert await peer.correlation() == 77
        peer.writer.close()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(SECONDS_MAX):
            while not is_so():  # noqa: ASYNC110  # the broker gives no notice
                await asyncio.sleep(0.001)

    def hang_up(self) -> None:
        for peer in self._peers:
            peer.writer.transport.abort()


@asynccontextmanager
async def running(
    data: Path, limits: LimitsConfig | None = None, **settings: Any
) -> AsyncIterator[Running]:
    """Run a node on a free port."""
    clock = ManualClock()
    node = Node(
        NodeSettings(port=0, data=data, limits=limits or LimitsConfig(), **settings), None, clock
    )
    await node.start()
    found = Running(node, clock)
    try:
        yield found
    finally:
        found.hang_up()
        await node.stop()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(message: object, version: int, correlation_id: int = 1) -> bytes:
    """Return a request as it is sent."""
    api = api_of(type(message))
    header = RequestHeader(
        key=api.key, version=version, correlation_id=correlation_id, client_id="test"
    )
    return framed(
        encode_request_header(header, request_header_version(api, version))
        + encode(message, version)
    )


def an_api_versions(correlation_id: int = 1) -> bytes:
    return request(ApiVersionsRequest(), 3, correlation_id)


def a_metadata(topic: str, correlation_id: int = 1) -> bytes:
    names = (MetadataRequestTopic(name=topic),)
    return request(MetadataRequest(topics=names), 9, correlation_id)


def a_fetch(topic: str, correlation_id: int = 1, max_wait_ms: int = 0) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=4 << 20)
    wanted = FetchTopic(topic=topic, partitions=(partition,))
    message = FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=4 << 20, topics=(wanted,)
    )
    return request(message, 11, correlation_id)


def a_produce(topic: str, value: bytes, correlation_id: int = 1, acks: int = -1) -> bytes:
    record = Record(offset=0, timestamp_ms=1, key=None, value=value)
    share = PartitionProduceData(index=0, records=bytes(build_batch([record])))
    data = TopicProduceData(name=topic, partition_data=(share,))
    message = ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(data,))
    return request(message, 9, correlation_id)
